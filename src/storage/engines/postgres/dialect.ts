const KNOWN = 2_000 // statements; those that are composed at run time are endless
const known = new Map<string, string>()

/** What every engine is asked, as PostgreSQL says it: numbered values, and the tenant at the head of every key. */
export function toPostgres(sql: string): string {
  const found = known.get(sql)
  if (found !== undefined) return found
  const translated = translate(sql)
  if (known.size >= KNOWN) known.clear()
  known.set(sql, translated)
  return translated
}

function translate(sql: string): string {
  let count = 0
  return collected(sql)
    .replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|\?/g, (part) => (part === '?' ? `$${++count}` : part))
    .replaceAll('group_concat(', 'string_agg(')
    .replace(/on conflict \((.*?)\)/g, (_, key) => `on conflict ("tenant_id", ${key.replace(/"[^"]+"\./g, '')})`)
}

/**
 * What is collected by a subselect is collected once. As a join it would be collected anew for each row, wherever
 * PostgreSQL expects few, which it does of every tenant that grew since its tables were analyzed.
 */
function collected(sql: string): string {
  const found = /\b(not )?in \((?=select )/.exec(sql)
  if (!found) return sql
  const start = found.index + found[0].length
  let [at, depth] = [start, 1]
  for (; depth && at < sql.length; at++) depth += sql[at] === '(' ? 1 : sql[at] === ')' ? -1 : 0
  const compared = found[1] ? '<> all' : '= any'
  return `${sql.slice(0, found.index)}${compared} (array(${sql.slice(start, at)})${collected(sql.slice(at))}`
}

/** An insert of one row as one of several; nothing for other statements. */
export function severalRows(sql: string, rows: number): string | undefined {
  const [, start, row] = /^(insert into [^?]*? values )(\([?, ]+\))$/.exec(sql) ?? []
  return start && start + Array(rows).fill(row).join(', ')
}
