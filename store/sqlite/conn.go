package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	modernc "modernc.org/sqlite"
)

// conn is one connection, used without database/sql: there is one writer and no pool to manage,
// no goroutine to end, and a scan hands out each row without a conversion in between.
type conn struct {
	raw interface {
		driver.Conn
		driver.ConnPrepareContext
		driver.ExecerContext
		driver.QueryerContext
	}
	// inTx says that a rollback failed, so that the next transaction has to try it again.
	inTx bool
}

// dial opens a connection to the file. query is the part of the DSN after the question mark.
func dial(ctx context.Context, path string, query url.Values) (*conn, error) {
	connector, err := modernc.NewConnector(dsn(path, query))
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{}
	var ok bool
	if c.raw, ok = raw.(interface {
		driver.Conn
		driver.ConnPrepareContext
		driver.ExecerContext
		driver.QueryerContext
	}); !ok {
		return nil, errors.Join(errors.New("the SQLite driver lacks the context methods"), raw.Close())
	}
	return c, nil
}

// dsn writes the path as a URI, so that no character of it is taken for a parameter.
func dsn(path string, query url.Values) string {
	p := filepath.ToSlash(path)
	if runtime.GOOS == "windows" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return "file://" + strings.ReplaceAll((&url.URL{Path: p}).EscapedPath(), "?", "%3F") + "?" + query.Encode()
}

func (c *conn) close() error { return c.raw.Close() }

func (c *conn) exec(ctx context.Context, sql string) error {
	_, err := c.raw.ExecContext(ctx, sql, nil)
	return err
}

// statement is a prepared write.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
}

func (c *conn) prepare(ctx context.Context, sql string) (statement, error) {
	s, err := c.raw.PrepareContext(ctx, sql)
	if err != nil {
		return nil, err
	}
	stmt, ok := s.(statement)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver lacks the context methods"), s.Close())
	}
	return stmt, nil
}

// query calls row for each row. The slice is reused.
func (c *conn) query(ctx context.Context, sql string, row func([]driver.Value) error) (err error) {
	rows, err := c.raw.QueryContext(ctx, sql, nil)
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	dest := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(dest); err == io.EOF { //nolint:errorlint // driver.Rows promises a bare io.EOF
			return nil
		} else if err != nil {
			return err
		}
		if err := row(dest); err != nil {
			return err
		}
	}
}

func (c *conn) queryInt(ctx context.Context, sql string) (n int64, err error) {
	err = c.query(ctx, sql, func(row []driver.Value) error {
		var ok bool
		if n, ok = row[0].(int64); !ok {
			return fmt.Errorf("%s gave %v, which is no number", sql, row[0])
		}
		return nil
	})
	return n, err
}

// transact runs f in a transaction that has the write lock from its beginning: so a lock that
// another program holds is met here, where waiting is possible, and not in the middle. The
// commit itself does not listen to ctx: whoever is told of an error must be able to rely on
// nothing having been written.
func (c *conn) transact(ctx context.Context, f func() error) error {
	if c.inTx {
		if err := c.rollback(ctx); err != nil {
			return err
		}
	}
	c.inTx = true
	err := c.exec(ctx, "BEGIN IMMEDIATE")
	if err == nil {
		err = f()
	}
	if err == nil {
		err = c.exec(context.WithoutCancel(ctx), "COMMIT")
	}
	if err != nil {
		// Also after a failed BEGIN: when ctx ends just then, it may have succeeded all the same.
		_ = c.rollback(ctx)
		return err
	}
	c.inTx = false
	return nil
}

// rollback ends the transaction. That there is none is fine: SQLite ends it by itself on some errors.
func (c *conn) rollback(ctx context.Context) error {
	err := c.exec(context.WithoutCancel(ctx), "ROLLBACK")
	if err != nil && !strings.Contains(err.Error(), "no transaction is active") {
		return fmt.Errorf("roll back: %w", err)
	}
	c.inTx = false
	return nil
}
