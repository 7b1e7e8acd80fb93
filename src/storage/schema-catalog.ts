/** The type of a column, whatever its engine calls it. */
export type ColumnKind = 'text' | 'integer' | 'real' | 'blob' | 'json'

/** A table of a tenant as all engines have it, without the engine's own columns. */
export type TableSchema = {
  name: string
  columns: { name: string; kind: ColumnKind }[]
  /** The columns of the primary key, in its order. */
  key: string[]
  /** The tables that its rows refer to. */
  references: string[]
}

/**
 * Tells whether a table is derived from others: it is rebuilt where it is needed, and never copied. These are the
 * search indexes.
 */
export const isDerivedTable = (name: string) => name.startsWith('search_')

/** The tables that record the progress of the search indexes. Without rows in them, everything is indexed again. */
export const SEARCH_PROGRESS_TABLES = ['search_progress', 'search_files']

/** The table with the keys of changed rows, while changes are captured. */
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

/** Returns the common type of an engine's type. @throws for a type that cannot be copied */
export function toColumnKind(type: string): ColumnKind {
  const kind = COLUMN_KIND_BY_TYPE[type.toLowerCase()]
  if (!kind)
    throw new Error(
      `Columns of type "${type}" cannot be copied: add the type to COLUMN_KIND_BY_TYPE in storage/schema-catalog.ts.`,
    )
  return kind
}

/** Returns the tables in an order where each comes after those that it refers to. */
export function sortByReferences(tables: TableSchema[]): TableSchema[] {
  const ordered: TableSchema[] = []
  const remaining = tables.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  while (remaining.length) {
    const isBlocked = ({ name, references }: TableSchema) =>
      references.some((to) => to !== name && remaining.some((other) => other.name === to))
    const next = remaining.findIndex((table) => !isBlocked(table))
    // Tables in a cycle come in any order.
    ordered.push(...remaining.splice(Math.max(next, 0), 1))
  }
  return ordered
}

/**
 * Returns the tables of two databases in the order of their references. A column is JSON where one of the databases
 * says so.
 * @throws when they have different tables or columns
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
