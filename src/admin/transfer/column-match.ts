import type { Blueprint, Field } from '../api/schema'

/** The target of a column that names entities. */
export const IDENTIFIER = 'identifier'

/** Which field each column fills, by the names of the columns; what is left out stands for none. */
export type ColumnTargets = Readonly<Record<string, string>>

/** Columns of an export that the server fills itself. */
const SYSTEM_COLUMNS = ['_id', 'created', 'updated', 'user', 'workspace', 'blueprint', 'tenant', 'id']

const simplify = (name: string) =>
  name
    .normalize('NFD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')

/** Returns the fields that a file can fill. */
export const listTargets = ({ fields, computed = {} }: Blueprint): Field[] =>
  fields.filter(({ key }) => !(key in computed))

/** Returns the field that each column most likely means, by its name. No field is filled twice. */
export function matchColumns(columns: readonly string[], blueprint: Blueprint): ColumnTargets {
  const fields = listTargets(blueprint)
  const targets: Record<string, string> = {}
  const find = (column: string): string | undefined => {
    if (simplify(column) === IDENTIFIER) return IDENTIFIER
    const exact = fields.find(({ key }) => key === column)
    if (exact || SYSTEM_COLUMNS.includes(column)) return exact?.key
    const name = simplify(column)
    return fields.find(({ key, title }) => simplify(key) === name || (title && simplify(title) === name))?.key
  }
  for (const column of columns) {
    const target = find(column)
    if (target && !Object.values(targets).includes(target)) targets[column] = target
  }
  return targets
}
