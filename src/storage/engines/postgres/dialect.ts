import { BoundedMap } from '../../../core/bounded-map'

const MAX_CACHED_STATEMENTS = 2_000 // there is no limit to statements that are composed at run time
const translations = new BoundedMap<string, Translation>(MAX_CACHED_STATEMENTS)

/** A statement of PostgreSQL; `listSizes` has the number of original parameters in each of its parameters, if some are lists. */
export type Translation = { text: string; listSizes?: number[] }

/**
 * Returns a statement of the engines' common dialect as PostgreSQL's: with numbered parameters, the tenant as the first
 * column of every key, and texts out of JSON compared byte by byte, because they have no column collation and the
 * database's language would apply.
 */
export function toPostgres(sql: string): Translation {
  const cached = translations.get(sql)
  if (cached !== undefined) return cached
  const translated = translate(sql)
  translations.set(sql, translated)
  return translated
}

function translate(sql: string): Translation {
  const listSizes: number[] = []
  const lists: number[] = []
  const numbered = materializeSubselects(packLists(sql, lists))
    // SQLite has the text of a boolean only as JSON.
    .replace(/\b(e\.(?:shown|altered)) -> /g, '$1 ->> ')
    .replace(
      /(->> )?('(?:[^']|'')*'|"(?:[^"]|"")*"|\?(::\w+\[\])?)/g,
      (_, arrow: string | undefined, part: string, list?: string) => {
        const operand = part.startsWith('?') ? `$${listSizes.push(list ? lists.shift()! : 1)}${list ?? ''}` : part
        return arrow ? `${arrow}${operand} collate "C"` : operand
      },
    )
    .replace(/\b(e\.(?:shown|altered)) ->> /g, '$1::json ->> ')
    .replaceAll('group_concat(', 'string_agg(')
    .replace(
      /\bfrom json_each\((\$\d+)\) as j cross join (\w+) e where (.*)$/s,
      'from json_array_elements_text($1::json) as j (value) cross join lateral (select * from $2 e where $3 offset 0) as e',
    )
    .replace(/\bcross join ("\w+") where (.*)$/, 'cross join lateral (select * from $1 where $2 offset 0) as $1')
    .replace(
      /\bcross join (entities e) where (e\.seq = \w+\.\w+)\b/,
      'cross join lateral (select * from $1 where $2 offset 0) as e where true',
    )
    .replace(/on conflict \((.*?)\)/g, (_, key) => `on conflict ("tenant_id", ${key.replace(/"[^"]+"\./g, '')})`)
  const listed = lookUpValues(numbered)
  const text = /search_(words|chunks)/.test(listed) ? translateSearch(listed) : listed
  return listSizes.some((size) => size > 1) ? { text, listSizes } : { text }
}

// Statements that read the words of entities by number. They match many rows, so they scan instead of using the index.
const IN_ORDER = /\bw\.rowid [<>]|\border by w\.rowid\b/

/**
 * Translates the full-text search of SQLite's FTS5 to `tsvector` and `tsquery`. A lower FTS5 rank is a better match,
 * and here, too, a text of fewer words weighs more.
 */
function translateSearch(sql: string): string {
  const [, matchParameter = ''] = /\bw\.words match (\$\d+)/.exec(sql) ?? []
  // A subquery is evaluated once, even in a generic plan.
  const query = (text: string) =>
    `(select replace(replace(replace(${text}, ' AND ', ' & '), ' OR ', ' | '), '*', ':*')::tsquery)`
  const toTsvectorInsert = (insert: string) =>
    insert.replace(/\(((?:\$\d+, )+)(\$\d+)\)/g, "($1array_to_tsvector(string_to_array($2, ' ')))")
  return (IN_ORDER.test(sql) ? sql : sql.replaceAll(/\bsearch_words w\b(?=.*\bw\.words match )/gs, 'searched_words w'))
    .replace(/^insert into search_\w+ .*/, toTsvectorInsert)
    .replace(/^select w\.rowid from search_chunks w where (.*) order by w\.rank, w\.rowid (limit \$\d+)$/, rankByBm25)
    .replace(/\browid\b/g, 'entity')
    .replace(/\bw\.words match (\$\d+)/g, (_, text: string) => `w.words @@ ${query(text)}`)
    .replace(/\bw\.rank\b/g, `-ts_rank(w.words, ${query(matchParameter)}, 2)`)
}

/**
 * Ranks chunks by BM25, as FTS5 does: `ts_rank` lacks its main factor, that a rarer word weighs more. The frequency of
 * a word within a chunk is not stored, so it counts once.
 */
function rankByBm25(_: string, where: string, limit: string) {
  const [, matchParameter = ''] = /\bw\.words match (\$\d+)/.exec(where) ?? []
  return `with fit as materialized (select rowid, words, length(words) as size from search_chunks w where ${where}),
    asked as materialized (select term::tsquery as word, number
      from unnest(string_to_array(${matchParameter}, ' OR ')) with ordinality as terms (term, number)),
    hits as materialized (select rowid, size, number from fit join asked on words @@ word),
    weights as materialized (select number, ln(1 + (select count(*) from fit)::float8 / (1 + count(*))) as weight
      from hits group by number)
    select rowid from hits join weights using (number) group by rowid, size
    order by sum(weight) / (1 + 1.2 * (0.25 + 0.75 * size / (select avg(size) from fit))) desc, rowid ${limit}`
}

/**
 * Evaluates each `in (select …)` once, as an array. PostgreSQL would evaluate it as a join for each row wherever it
 * expects few rows, which it does for every tenant that grew since its tables were analyzed.
 */
function materializeSubselects(sql: string): string {
  // An array cannot hold rows, so `(a, b) in (select …)` is left alone.
  const subselect = /(?<!\) *)\b(not )?in \((?=select )/.exec(sql)
  if (!subselect) return sql
  const start = subselect.index + subselect[0].length
  const end = findClosingParenthesis(sql, start)
  const compared = subselect[1] ? '<> all' : '= any'
  const list = `(array(${materializeSubselects(sql.slice(start, end))})`
  return `${sql.slice(0, subselect.index)}${compared} ${list}${materializeSubselects(sql.slice(end))}`
}

/**
 * Turns each list of texts or numbers of entities into an array, so that lists of all lengths share a statement. PostgreSQL looks
 * up each value of a subquery's array in an index, because its length is unknown. With a long list, it would rather scan all rows
 * of the tenant, which it expects to be few.
 */
const packLists = (sql: string, sizes: number[]) =>
  sql.replace(
    /\b((?:\w+\.)?(value|identifier|_id|seq)) in \((\?(?:, \?){3,})\)/g,
    (_, column: string, name: string, list: string) => {
      sizes.push((list.length + 2) / '?, '.length)
      const type = `${name === 'seq' ? 'bigint' : 'text'}[]`
      return `${column} = any ((select ?::${type})::${type})`
    },
  )

/** Turns the values of a field into an array, because PostgreSQL would rather scan all index rows than look up a list. */
const lookUpValues = (sql: string) =>
  sql.replace(
    /\bfrom entity_index (\w) where (\1\.field = \$\d+ and \1\.path = \$\d+) and \1\.value = any \(\(select (\$\d+::text\[\])\)::text\[\]\)(?=\)| limit )/g,
    (_, alias: string, field: string, values: string) =>
      `from unnest(${values}) as v (value) cross join lateral
        (select * from entity_index ${alias} where ${field} and ${alias}.value = v.value offset 0) as ${alias}`,
  )

/** Returns the index of the parenthesis that closes the one just before `start`. */
function findClosingParenthesis(sql: string, start: number): number {
  let depth = 1
  for (const { 0: part, index } of sql.slice(start).matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]/g)) {
    depth += part === '(' ? 1 : part === ')' ? -1 : 0
    if (!depth) return start + index
  }
  return sql.length
}

/**
 * Returns a statement that inserts or deletes `rows` rows, from a statement for one row; undefined for other
 * statements.
 */
export function toMultiRow(sql: string, rows: number): string | undefined {
  const [, from, where] = /^delete from (\w+) where (\w+ = \?(?: and \w+ = \?)*)$/.exec(sql) ?? []
  if (where) {
    const selectRow = `select ctid from ${from} where ${where}`
    return `delete from ${from} where ctid = any(array(${Array(rows).fill(selectRow).join(' union all ')}))`
  }
  const [, table, keys] = /^delete from ("\w+") where (.*)$/.exec(sql) ?? []
  if (table && keys) {
    const parts = keys.split(' and ').map((part) => part.split(' = ') as [string, string])
    const row = `(${parts.map(([, value]) => value).join(', ')})`
    const keyTable = `gone (${parts.map(([column]) => column).join(', ')})`
    const keyCondition = parts.map(([column]) => `${table}.${column} = gone.${column}`).join(' and ')
    // Rows are looked up by key one by one: the planner could otherwise scan all of them for each row of the table.
    const selectRows = `select own from (values ${Array(rows).fill(row).join(', ')}) as ${keyTable}
      cross join lateral (select ctid as own from ${table} where ${keyCondition} offset 0) as found`
    return `delete from ${table} where ctid = any(array(${selectRows}))`
  }
  const [, start, row, otherwise] =
    /^(insert into [^?]*? values )(\([?, ]+\))( on conflict [^?]*| returning [\w, ]+)?$/.exec(sql) ?? []
  return start && start + Array(rows).fill(row).join(', ') + (otherwise ?? '')
}
