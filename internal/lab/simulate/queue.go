package simulate

import (
	"container/heap"
	"time"
)

// queue holds what is to happen, in the order of its time and then of its entry.
type queue struct {
	items []item
	now   time.Duration
	count uint64
}

type item struct {
	at time.Duration
	n  uint64
	do func()
}

// at lets f happen at t, or now if that has passed.
func (q *queue) at(t time.Duration, f func()) {
	q.count++
	heap.Push(q, item{max(t, q.now), q.count, f})
}

// step lets the next thing happen, and returns false where there is none.
func (q *queue) step() bool {
	if len(q.items) == 0 {
		return false
	}
	it := heap.Pop(q).(item)
	q.now = it.at
	it.do()
	return true
}

// Len, Less, Swap, Push and Pop are container/heap's.

func (q *queue) Len() int      { return len(q.items) }
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue) Push(x any)    { q.items = append(q.items, x.(item)) }

func (q *queue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.at < b.at || a.at == b.at && a.n < b.n
}

func (q *queue) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = item{}
	q.items = q.items[:last]
	return it
}
