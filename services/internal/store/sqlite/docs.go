package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	createDoc  = "INSERT INTO docs(kind, key, version, value) VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING"
	replaceDoc = "UPDATE docs SET version = version + 1, value = ? WHERE kind = ? AND key = ? AND version = ?"
	deleteDoc  = "DELETE FROM docs WHERE kind = ? AND key = ? AND ? IN (0, version)"
	countDoc   = "SELECT count(*) FROM docs WHERE kind = ? AND key = ?"
	readDoc    = "SELECT version, value FROM docs WHERE kind = ? AND key = ?"
	listDocs   = "SELECT key, version, value FROM docs WHERE kind = ? AND key > ? ORDER BY key LIMIT ?"
)

// CreateDoc implements store.Docs.
func (s *Store) CreateDoc(ctx context.Context, d store.Doc) error {
	n, err := s.write(ctx, d, createDoc, d.Kind, d.Key, value(d))
	if err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("create %s %q: %w", d.Kind, d.Key, store.ErrExists)
}

// Doc implements store.Docs.
func (s *Store) Doc(ctx context.Context, kind store.Kind, key string) (store.Doc, error) {
	d := store.Doc{Kind: kind, Key: key}
	err := s.row(ctx, readDoc, kind, key).Scan(&d.Version, &d.Value)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Doc{}, fmt.Errorf("%s %q: %w", kind, key, store.ErrNotFound)
	}
	if err != nil {
		return store.Doc{}, s.wrapError(fmt.Sprintf("read %s %q", kind, key), err)
	}
	return d, nil
}

// ReplaceDoc implements store.Docs.
func (s *Store) ReplaceDoc(ctx context.Context, d store.Doc) (int64, error) {
	n, err := s.write(ctx, d, replaceDoc, value(d), d.Kind, d.Key, d.Version)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, fmt.Errorf("replace version %d of %s %q: %w", d.Version, d.Kind, d.Key, store.ErrConflict)
	}
	return d.Version + 1, nil
}

// DeleteDoc implements store.Docs.
func (s *Store) DeleteDoc(ctx context.Context, d store.Doc) error {
	if err := d.Validate(); err != nil {
		return err
	}
	remaining := 0
	err := s.update(ctx, func(t tx) error {
		if _, err := t.exec(ctx, deleteDoc, d.Kind, d.Key, d.Version); err != nil {
			return err
		}
		return t.row(ctx, countDoc, d.Kind, d.Key).Scan(&remaining)
	})
	if err != nil {
		return s.wrapError(fmt.Sprintf("delete %s %q", d.Kind, d.Key), err)
	}
	if remaining > 0 {
		return fmt.Errorf("delete version %d of %s %q: %w", d.Version, d.Kind, d.Key, store.ErrConflict)
	}
	return nil
}

// Docs implements store.Lister.
func (s *Store) Docs(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Doc, error) {
	if err := positive(limit); err != nil {
		return nil, err
	}
	var docs []store.Doc
	err := s.query(ctx, func(rows *sql.Rows) error {
		d := store.Doc{Kind: kind}
		err := rows.Scan(&d.Key, &d.Version, &d.Value)
		docs = append(docs, d)
		return err
	}, listDocs, kind, after, limit)
	return docs, s.wrapError(fmt.Sprintf("list %s", kind), err)
}

// write runs one statement about d and returns how many rows it changed.
func (s *Store) write(ctx context.Context, d store.Doc, statement string, args ...any) (n int64, err error) {
	if err := d.Validate(); err != nil {
		return 0, err
	}
	err = s.update(ctx, func(t tx) error {
		n, err = t.exec(ctx, statement, args...)
		return err
	})
	return n, s.wrapError(fmt.Sprintf("write %s %q", d.Kind, d.Key), err)
}

// value returns the document's content, never nil, which would be NULL.
func value(d store.Doc) []byte { return append([]byte{}, d.Value...) }

func positive(limit int) error {
	if limit < 1 {
		return fmt.Errorf("limit %d: %w: it must be 1 or more", limit, store.ErrRefused)
	}
	return nil
}
