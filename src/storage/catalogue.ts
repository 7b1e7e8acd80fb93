/** What a column holds, whatever its engine calls that. */
export type Kind = 'text' | 'integer' | 'real' | 'blob' | 'json'

/** A table of a tenant as all engines have it: without what belongs to the engine. */
export type Table = {
  name: string
  columns: { name: string; kind: Kind }[]
  /** The columns of the primary key, in its order. */
  key: string[]
  /** The tables that its rows refer to. */
  refers: string[]
}

/** Whether a table is made anew from others where it is needed, and never copied: what texts are searched by. */
export const isDerived = (name: string) => name.startsWith('search_')

/** Which of what is derived is made already; without a row in them, all of it is made anew. */
export const PROGRESS = ['search_progress', 'search_files']

/** Where the keys of changed rows are noted for who follows them. */
export const CHANGED = 'changed_rows'

const KINDS: Record<string, Kind> = {
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
export function kindOf(type: string): Kind {
  const kind = KINDS[type.toLowerCase()]
  if (!kind) throw new Error(`No rule says how to copy a column of the type "${type}": see storage/catalogue.ts.`)
  return kind
}

/** Tables that are referred to come before those that refer to them. */
export function inOrder(tables: Table[]): Table[] {
  const ordered: Table[] = []
  const left = tables.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  while (left.length) {
    const waits = ({ name, refers }: Table) => refers.some((to) => to !== name && left.some((one) => one.name === to))
    const next = left.findIndex((table) => !waits(table))
    // In a circle nobody is first.
    ordered.push(...left.splice(Math.max(next, 0), 1))
  }
  return ordered
}

/**
 * What two databases have in common, which has to be all: their tables in order. A column is JSON where one of them says so.
 * @throws when they have other tables or columns
 */
export function agreed(one: Table[], other: Table[]): Table[] {
  const shape = (tables: Table[]) =>
    tables.map(({ name, columns, key }) => `${name} (${columns.map((column) => column.name)}) by ${key}`).sort()
  const differing = new Set(shape(one)).symmetricDifference(new Set(shape(other)))
  if (differing.size) throw new Error(`The two databases are not of one version: ${[...differing].join('; ')}`)
  return inOrder(one).map((table) => {
    const theirs = other.find(({ name }) => name === table.name)!
    const json = (name: string) => theirs.columns.some((column) => column.name === name && column.kind === 'json')
    return { ...table, columns: table.columns.map(({ name, kind }) => ({ name, kind: json(name) ? 'json' : kind })) }
  })
}
