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
  return sql
    .replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|\?/g, (part) => (part === '?' ? `$${++count}` : part))
    .replace(/on conflict \((.*?)\)/g, (_, key) => `on conflict ("tenant_id", ${key.replace(/"[^"]+"\./g, '')})`)
}

/** An insert of one row as one of several; nothing for other statements. */
export function severalRows(sql: string, rows: number): string | undefined {
  const [, start, row] = /^(insert into [^?]*? values )(\([?, ]+\))$/.exec(sql) ?? []
  return start && start + Array(rows).fill(row).join(', ')
}
