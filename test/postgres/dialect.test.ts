import { expect, test } from 'bun:test'
import { toMultiRow, toPostgres } from '../../src/storage/engines/postgres/dialect'
import { Statement } from '../../src/storage/engines/postgres/statement-group'

const textOf = (sql: string) => toPostgres(sql).text

test.each([
  ['select ? from a where b = ?', 'select $1 from a where b = $2'],
  [`select '?', "?", '''?' from a where b = ?`, `select '?', "?", '''?' from a where b = $1`],
  [
    'insert into a (b) values (?) on conflict ("a"."b") do nothing',
    'insert into a (b) values ($1) on conflict ("tenant_id", "b") do nothing',
  ],
  [
    'select 1 from a where b in (select c from d where e in (?, ?)) and f = ?',
    'select 1 from a where b = any (array(select c from d where e in ($1, $2))) and f = $3',
  ],
  [
    'select 1 from a where b not in (select c from d) and e in (select f from g where (h))',
    'select 1 from a where b <> all (array(select c from d)) and e = any (array(select f from g where (h)))',
  ],
  [
    `select 1 from a where b in (select ')' from d where e in (select ? from ")")) and f in (?)`,
    `select 1 from a where b = any (array(select ')' from d where e = any (array(select $1 from ")")))) and f in ($2)`,
  ],
  [
    'select 1 from a where (b, c) in (select d, e from f) and g in (select h from i)',
    'select 1 from a where (b, c) in (select d, e from f) and g = any (array(select h from i))',
  ],
  [
    'select a from json_each(?) as j cross join b e where e.c = ? and e.d = j.value',
    'select a from json_array_elements_text($1::json) as j (value) cross join lateral (select * from b e where e.c = $2 and e.d = j.value offset 0) as e',
  ],
  ["select group_concat(a, ',') from b", "select string_agg(a, ',') from b"],
  ['select 1 from a where b in (?)', 'select 1 from a where b in ($1)'],
  ['select 1 from a where b ->> ? > ?', 'select 1 from a where b ->> $1 collate "C" > $2'],
  [
    'insert into search_words (rowid, words) values (?, ?), (?, ?)',
    "insert into search_words (entity, words) values ($1, array_to_tsvector(string_to_array($2, ' '))), ($3, array_to_tsvector(string_to_array($4, ' ')))",
  ],
  [
    'select 1 from a where (b, c) > (?, ?) and exists (select 1 from search_words w where w.rowid = a.d)',
    'select 1 from a where (b, c) > ($1, $2) and exists (select 1 from search_words w where w.entity = a.d)',
  ],
  [
    'select 1 from (select b from a limit ?) as n cross join entities e where e.seq = n.b and e.c > ?',
    'select 1 from (select b from a limit $1) as n cross join lateral (select * from entities e where e.seq = n.b offset 0) as e where true and e.c > $2',
  ],
  [`select 1 from a order by b ->> '->> ?' desc`, `select 1 from a order by b ->> '->> ?' collate "C" desc`],
])('toPostgres translates: %s', (statement, expected) => {
  expect(textOf(statement)).toBe(expected)
})

const QUERY_SQL = "(select replace(replace(replace($1, ' AND ', ' & '), ' OR ', ' | '), '*', ':*')::tsquery)"

test('toPostgres searches words by their index, but goes through them where their order matters', () => {
  const search = (from: string, rest = '') => `select w.rowid from ${from} w where w.words match ?${rest}`
  const found = (from: string, rest = '') => `select w.entity from ${from} w where w.words @@ ${QUERY_SQL}${rest}`
  expect(textOf(search('search_words', ' limit 5'))).toBe(found('searched_words', ' limit 5'))
  expect(textOf(search('search_words', ' order by w.rowid'))).toBe(found('search_words', ' order by w.entity'))
  expect(textOf(search('search_words', ' and w.rowid < ?'))).toBe(found('search_words', ' and w.entity < $2'))
})

test('toPostgres looks up each of several values of a field, unless more conditions or an order follow', () => {
  const list = (rest: string) =>
    `select i.entity from entity_index i where i.field = ? and i.path = ? and i.value in (?, ?, ?, ?)${rest}`
  const translated = textOf(`select 1 from a where b in (${list('')})`)
  expect(translated).toContain('from unnest($3::text[]) as v (value)')
  expect(translated).toContain('where i.field = $1 and i.path = $2 and i.value = v.value offset 0')
  for (const rest of [' and i.entity = ?', ' order by i.value'])
    expect(textOf(list(rest))).toContain('i.value = any ((select $3::text[])::text[])')
})

test('toPostgres translates a search for chunks into a ranking by word frequency within the given stores', () => {
  const statement =
    'select w.rowid from search_chunks w where w.words match ? and w.store in (?, ?) order by w.rank, w.rowid limit ?'
  const translated = textOf(statement)
  expect(translated).toContain(`w.words @@ ${QUERY_SQL} and`)
  expect(translated).toContain("unnest(string_to_array($1, ' OR '))")
  expect(translated).toContain('w.store in ($2, $3)')
  expect(translated).toEndWith('desc, entity limit $4')
  for (const word of ['rowid', 'match', 'w.rank']) expect(translated).not.toContain(word)
  expect(textOf('insert into search_chunks (rowid, store, words) values (?, ?, ?)')).toBe(
    "insert into search_chunks (entity, store, words) values ($1, $2, array_to_tsvector(string_to_array($3, ' ')))",
  )
})

test('toPostgres turns lists of texts or numbers into arrays, and Statement packs their parameters', () => {
  const list = (length: number) => Array(length).fill('?').join(', ')
  const { text, listSizes } = toPostgres(
    `select '(?)' from a where b = ? and e.identifier in (${list(4)}) and seq in (${list(16)}) and c = ? and d in (${list(4)})`,
  )
  expect(text).toBe(
    "select '(?)' from a where b = $1 and e.identifier = any ((select $2::text[])::text[]) and seq = any ((select $3::bigint[])::bigint[]) and c = $4 and d in ($5, $6, $7, $8)",
  )
  expect(listSizes).toEqual([1, 4, 16, 1, 1, 1, 1, 1])
  const statement = Statement.translate(`select 1 from a where b = ? and _id in (${list(4)}) and c = ?`)
  const values = ['b', 'x', 'null', '"}, {\\', '"}, {\\', null]
  expect(statement.toParams(values)).toEqual(['b', '{"x","null","\\"}, {\\\\"}', null])
  expect(statement.isPlain).toBe(true)
  const short = `select 1 from a where b = ? and _id in (${list(1)})`
  expect(Statement.translate(short).toParams(['b', 'x'])).toEqual(['b', 'x'])
})

test('toMultiRow extends simple inserts and deletes to several rows and returns undefined for others', () => {
  expect(toMultiRow('insert into a (b, c) values (?, ?)', 3)).toBe('insert into a (b, c) values (?, ?), (?, ?), (?, ?)')
  expect(toMultiRow('delete from a where b = ? and c = ?', 2)).toBe(
    'delete from a where ctid = any(array(select ctid from a where b = ? and c = ? union all select ctid from a where b = ? and c = ?))',
  )
  expect(toMultiRow('insert into a (b) values (?) returning b', 2)).toBe(
    'insert into a (b) values (?), (?) returning b',
  )
  for (const other of ['delete from a where b > ?', 'update a set b = ?']) expect(toMultiRow(other, 3)).toBeUndefined()
})
