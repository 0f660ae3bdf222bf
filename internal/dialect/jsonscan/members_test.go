package jsonscan

import "testing"

func TestObject(t *testing.T) {
	t.Parallel()
	text := []byte(" {\"a\": {\"x\":\n 1}, \"b\\\"\":\"t\\u0041\" ,\r\n\"c\":null}\n")
	o, ok := ReadObject(text)
	if !ok || string(o.Get("a")) != "{\"x\":\n 1}" || o.Text(`b"`) != "tA" || o.Text("a") != "" || o.Get("d") != nil || string(o.Get("c")) != "null" {
		t.Fatalf("%v %q", ok, o)
	}
	other := o.Clone()
	other.Set("a", []byte("2"))
	other.Set("d", AppendList(nil, [][]byte{[]byte("[\n1]"), []byte(`"\r"`)}))
	other.Delete(`b"`)
	other.Delete("e")
	if got, want := string(other.JSON()), `{"a":2,"c":null,"d":[[1],"\r"]}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got, want := string(o.JSON()), `{"a":{"x": 1},"b\"":"t\u0041","c":null}`; got != want {
		t.Errorf("the first: got %s\nwant %s", got, want)
	}
	before := string(text)
	_ = append(o.Get("a"), "!!!!!!!!"...)
	if string(text) != before {
		t.Errorf("appending to a value wrote into the text: %s", text)
	}
	if got := string(Object(nil).JSON()); got != "{}" {
		t.Errorf("an empty object is %s", got)
	}
	for _, text := range []string{"", "[]", "{", `{"a":1}x`, `"a"`, "null"} {
		if o, ok := ReadObject([]byte(text)); ok {
			t.Errorf("%s is read as %q", text, o)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	list, ok := ReadList([]byte(` [ 1 ,{"a":[2]}, ""] `))
	if !ok || len(list) != 3 || string(list[0]) != "1" || string(list[1]) != `{"a":[2]}` || string(list[2]) != `""` {
		t.Errorf("%v %q", ok, list)
	}
	if list, ok := ReadList([]byte("[]")); !ok || len(list) != 0 {
		t.Errorf("%v %q", ok, list)
	}
	for _, text := range []string{"", "{}", "[1", "[1]2", "7"} {
		if list, ok := ReadList([]byte(text)); ok {
			t.Errorf("%s is read as %q", text, list)
		}
	}
}
