/** What a column holds, whatever its engine calls that. */
export type ColumnKind = 'text' | 'integer' | 'real' | 'blob' | 'json'

/** A table of a tenant as all engines have it: without what belongs to the engine. */
export type TableSchema = {
  name: string
  columns: { name: string; kind: ColumnKind }[]
  /** The columns of the primary key, in its order. */
  key: string[]
  /** The tables that its rows refer to. */
  references: string[]
}

/** Whether a table is made anew from others where it is needed, and never copied: what texts are searched by. */
export const isDerivedTable = (name: string) => name.startsWith('search_')

/** Which of what is derived is made already; without a row in them, all of it is made anew. */
export const SEARCH_PROGRESS_TABLES = ['search_progress', 'search_files']

/** Where the keys of changed rows are noted for who follows them. */
export const CHANGED_ROWS_TABLE = 'changed_rows'

const COLUMN_KIND_BY_TYPE: Record<string, ColumnKind> = {
  text: 'text',
  integer: 'integer',
  bigint: 'integer',
  real: 'real',
  'double precision': 'real',
  blob: 'blob',
  bytea: 'blob',
  json: 'json',
  jsonb: 'json',
}

/** What a type of an engine is to all of them. @throws for one that no rule says how to copy */
export function toColumnKind(type: string): ColumnKind {
  const kind = COLUMN_KIND_BY_TYPE[type.toLowerCase()]
  if (!kind)
    throw new Error(
      `Columns of type "${type}" cannot be copied: add the type to COLUMN_KIND_BY_TYPE in storage/schema-catalog.ts.`,
    )
  return kind
}

/** Tables that are referred to come before those that refer to them. */
export function sortByReferences(tables: TableSchema[]): TableSchema[] {
  const ordered: TableSchema[] = []
  const remaining = tables.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  while (remaining.length) {
    const isBlocked = ({ name, references }: TableSchema) =>
      references.some((to) => to !== name && remaining.some((one) => one.name === to))
    const next = remaining.findIndex((table) => !isBlocked(table))
    // In a circle nobody is first.
    ordered.push(...remaining.splice(Math.max(next, 0), 1))
  }
  return ordered
}

/**
 * What two databases have in common, which has to be all: their tables in order. A column is JSON where one of them says so.
 * @throws when they have other tables or columns
 */
export function requireSameTables(source: TableSchema[], target: TableSchema[]): TableSchema[] {
  const describe = (tables: TableSchema[]) =>
    tables.map(({ name, columns, key }) => `${name} (${columns.map((column) => column.name)}) by ${key}`).sort()
  const differing = new Set(describe(source)).symmetricDifference(new Set(describe(target)))
  if (differing.size) throw new Error(`The two databases have different schemas: ${[...differing].join('; ')}`)
  return sortByReferences(source).map((table) => {
    const theirs = target.find(({ name }) => name === table.name)!
    const isJson = (name: string) => theirs.columns.some((column) => column.name === name && column.kind === 'json')
    return { ...table, columns: table.columns.map(({ name, kind }) => ({ name, kind: isJson(name) ? 'json' : kind })) }
  })
}
