import type { Model } from '../../blueprints/model'
import type { Tx } from '../../storage/port'
import { findExistingNames } from './bulk-insert'
import { listOwnReferences } from './later-references'
import type { Operation } from './operation'

export type PlannedLine = { line: number; operation: Operation }

const MAX_HELD_CHARACTERS = 64 << 20

/** Lines of an import that refer to entities of later lines, and wait for these. */
export class HeldLines {
  #byName = new Map<string, PlannedLine[]>()
  #names = new Set<string>()
  #size = 0

  /** Holds a line back until the entity of that name has been imported. Returns false when there is no room for it. */
  hold(line: PlannedLine, name: string): boolean {
    const size = JSON.stringify(line.operation.data).length
    if (this.#size + size > MAX_HELD_CHARACTERS) return false
    this.#size += size
    this.#byName.set(name, [...(this.#byName.get(name) ?? []), line])
    if (line.operation.name) this.#names.add(line.operation.name)
    return true
  }

  /** Tells whether an earlier line about the same entity is held back: then a later one has to wait for it. */
  has = ({ operation: { name } }: PlannedLine) => !!name && this.#names.has(name)

  /** Returns the lines that waited for an entity, which has been imported. */
  release(name: string): PlannedLine[] {
    const lines = this.#byName.get(name) ?? []
    this.#byName.delete(name)
    this.#forget(lines)
    return lines
  }

  /** Returns all lines that still wait, in their order. */
  releaseAll(): PlannedLine[] {
    const lines = [...this.#byName.values()].flat().sort((one, other) => one.line - other.line)
    this.#byName.clear()
    this.#forget(lines)
    return lines
  }

  #forget(lines: PlannedLine[]) {
    for (const { operation } of lines) {
      this.#names.delete(operation.name)
      this.#size -= JSON.stringify(operation.data).length
    }
  }
}

/**
 * Splits lines into those whose references are met, by existing entities or by lines that are, and the others, each with
 * the first name that is missing.
 */
function splitByReferences(model: Model, lines: PlannedLine[], exists: (name: string) => boolean) {
  const missing = new Map<PlannedLine, string>()
  for (let hasChanged = true; hasChanged; ) {
    hasChanged = false
    const names = new Set(lines.filter((line) => !missing.has(line)).map(({ operation }) => operation.name))
    for (const line of lines) {
      if (missing.has(line)) continue
      const references = listOwnReferences(model, line.operation)
      const unmet = references.find(({ identifier }) => !names.has(identifier) && !exists(identifier))
      if (!unmet) continue
      missing.set(line, unmet.identifier)
      hasChanged = true
    }
  }
  return { met: lines.filter((line) => !missing.has(line)), missing }
}

/** Splits lines by whether their references are met by stored entities, or by each other. */
export async function splitByStored(db: Pick<Tx, 'query'>, model: Model, lines: PlannedLine[]) {
  const references = lines.flatMap(({ operation }) => listOwnReferences(model, operation))
  const names = references.map(({ identifier }) => identifier)
  const existing = await findExistingNames(db, model, names)
  return splitByReferences(model, lines, (name) => existing.has(name))
}

/** Returns lines in groups that refer to each other, or are about the same entity. */
export function groupByReferences(model: Model, lines: PlannedLine[]): PlannedLine[][] {
  const parents = new Map<string, string>()
  const find = (name: string): string => {
    let root = name
    for (let next = parents.get(root); next !== undefined && next !== root; next = parents.get(root)) root = next
    parents.set(name, root)
    return root
  }
  const nameOf = ({ line, operation }: PlannedLine) => operation.name || `line ${line}`
  for (const line of lines)
    for (const { identifier } of listOwnReferences(model, line.operation))
      parents.set(find(nameOf(line)), find(identifier))
  return [...Map.groupBy(lines, (line) => find(nameOf(line))).values()]
}
