package levigo

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/jmhodges/levigo"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustFail(t *testing.T, err error, beginning string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), beginning) {
		t.Fatalf("not %q but %v", beginning, err)
	}
}

func has(t *testing.T, db *levigo.DB, ro *levigo.ReadOptions, key, value string) {
	t.Helper()
	found, err := db.Get(ro, []byte(key))
	must(t, err)
	if (found == nil) != (value == "") || string(found) != value {
		t.Fatalf("%s is %q, not %q", key, found, value)
	}
}

// given calls a function of levigo whose argument is a type of C that only levigo can name.
func given(function any, pointer unsafe.Pointer) {
	value := reflect.ValueOf(function)
	argument := reflect.NewAt(value.Type().In(0).Elem(), pointer)
	value.Call([]reflect.Value{argument})
}

func TestVersions(t *testing.T) {
	if levigo.GetLevelDBMajorVersion() != 1 || levigo.GetLevelDBMinorVersion() != 23 {
		t.Fatal("another version")
	}
}

// TestEveryCall goes through all that levigo has.
func TestEveryCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	env, cache := levigo.NewDefaultEnv(), levigo.NewLRUCache(1<<20)
	filter := levigo.NewBloomFilter(10)
	o := levigo.NewOptions()
	o.SetEnv(env)
	o.SetCache(cache)
	o.SetFilterPolicy(filter)
	o.SetComparator(nil)
	o.SetInfoLog(nil)
	o.SetParanoidChecks(true)
	o.SetWriteBufferSize(1 << 20)
	o.SetMaxOpenFiles(100)
	o.SetBlockSize(4096)
	o.SetBlockRestartInterval(16)
	o.SetCompression(levigo.SnappyCompression)
	_, err := levigo.Open(path, o)
	mustFail(t, err, "Invalid argument: ")
	o.SetCreateIfMissing(true)
	db, err := levigo.Open(path, o)
	must(t, err)
	_, err = levigo.Open(path, o)
	mustFail(t, err, "IO error: lock ")

	wo, ro := levigo.NewWriteOptions(), levigo.NewReadOptions()
	wo.SetSync(true)
	must(t, db.Put(wo, []byte("basalt"), []byte("igneous")))
	wo.SetSync(false)
	ro.SetVerifyChecksums(true)
	ro.SetFillCache(false)
	has(t, db, ro, "basalt", "igneous")
	snapshot := db.NewSnapshot()
	must(t, db.Delete(wo, []byte("basalt")))
	has(t, db, ro, "basalt", "")
	ro.SetSnapshot(snapshot)
	has(t, db, ro, "basalt", "igneous")
	ro.SetSnapshot(nil)
	db.ReleaseSnapshot(snapshot)

	batch := levigo.NewWriteBatch()
	batch.Put([]byte("lost"), []byte("x"))
	batch.Clear()
	batch.Put([]byte("chalk"), []byte("sedimentary"))
	batch.Put([]byte("gneiss"), []byte("metamorphic"))
	batch.Put([]byte("pumice"), nil)
	batch.Delete([]byte("pumice"))
	must(t, db.Write(wo, batch))
	batch.Close()
	has(t, db, ro, "lost", "")
	has(t, db, ro, "pumice", "")

	iterate(t, db, ro)
	db.CompactRange(levigo.Range{})
	sizes := db.GetApproximateSizes([]levigo.Range{{Start: []byte("a"), Limit: []byte("z")}})
	if len(sizes) != 1 || sizes[0] == 0 {
		t.Fatal("sizes", sizes)
	}
	if stats := db.PropertyValue("leveldb.stats"); !strings.Contains(stats, "Compactions") {
		t.Fatal("statistics", stats)
	}
	if db.PropertyValue("leveldb.nothing") != "" {
		t.Fatal("a property that there is not")
	}
	db.Close()
	atRest(t, path, o, ro)
	for _, object := range []interface{ Close() }{wo, ro, o, filter, cache, env} {
		object.Close()
	}
}

func iterate(t *testing.T, db *levigo.DB, ro *levigo.ReadOptions) {
	it := db.NewIterator(ro)
	defer it.Close()
	if it.Valid() {
		t.Fatal("valid before it is placed")
	}
	it.SeekToFirst()
	if string(it.Key()) != "chalk" || string(it.Value()) != "sedimentary" {
		t.Fatal("first row", string(it.Key()))
	}
	it.Next()
	it.Prev()
	it.Next()
	if string(it.Key()) != "gneiss" {
		t.Fatal("second row", string(it.Key()))
	}
	it.Next()
	if it.Valid() {
		t.Fatal("valid behind the last row")
	}
	it.SeekToLast()
	it.Seek([]byte("d"))
	if !it.Valid() || string(it.Key()) != "gneiss" {
		t.Fatal("sought row")
	}
	must(t, it.GetError())
}

func atRest(t *testing.T, path string, o *levigo.Options, ro *levigo.ReadOptions) {
	must(t, levigo.RepairDatabase(path, o))
	o.SetErrorIfExists(true)
	_, err := levigo.Open(path, o)
	mustFail(t, err, "Invalid argument: ")
	o.SetErrorIfExists(false)
	o.SetCompression(levigo.NoCompression)
	db, err := levigo.Open(path, o)
	must(t, err)
	has(t, db, ro, "chalk", "sedimentary")
	db.Close()
	must(t, levigo.DestroyDatabase(path, o))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("something is left of the database")
	}
}

func TestComparator(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	comparator, o := newComparator(), levigo.NewOptions()
	given(o.SetComparator, comparator)
	o.SetCreateIfMissing(true)
	db, err := levigo.Open(path, o)
	must(t, err)
	wo, ro := levigo.NewWriteOptions(), levigo.NewReadOptions()
	must(t, db.Put(wo, []byte("b"), []byte("2")))
	must(t, db.Put(wo, []byte("a"), []byte("1")))
	has(t, db, ro, "b", "2")
	db.Close()
	other := levigo.NewOptions()
	_, err = levigo.Open(path, other)
	mustFail(t, err, "Invalid argument: example.Bytewise does not match")
	for _, object := range []interface{ Close() }{wo, ro, o, other} {
		object.Close()
	}
	given(levigo.DestroyComparator, comparator)
	if destroyedComparators() != 1 {
		t.Fatal("the comparator's state is destroyed once")
	}
}
