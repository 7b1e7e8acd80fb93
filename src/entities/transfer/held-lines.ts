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
    const waiting = this.#byName.get(name)
    if (waiting) waiting.push(line)
    else this.#byName.set(name, [line])
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
 * A name that a line refers to and that nothing has. `root` is the one that has to come for it: the same, or what the
 * line of that name waits for itself.
 */
export type MissingName = { name: string; root: string }

/** Splits lines into those whose references are met, by existing entities or by lines that are, and the others. */
export function splitByReferences(model: Model, lines: PlannedLine[], exists: (name: string) => boolean) {
  const lineCounts = new Map<string, number>()
  const dependents = new Map<string, PlannedLine[]>()
  const missing = new Map<PlannedLine, MissingName>()
  for (const { operation } of lines) lineCounts.set(operation.name, (lineCounts.get(operation.name) ?? 0) + 1)
  for (const line of lines)
    for (const { identifier } of listOwnReferences(model, line.operation)) {
      if (exists(identifier)) continue
      const others = dependents.get(identifier)
      if (others) others.push(line)
      else dependents.set(identifier, [line])
      if (!lineCounts.has(identifier) && !missing.has(line)) missing.set(line, { name: identifier, root: identifier })
    }
  // Those that refer to a line without its target lack theirs, too. The map grows while it is walked.
  for (const [{ operation }, { root }] of missing) {
    const left = lineCounts.get(operation.name)! - 1
    lineCounts.set(operation.name, left)
    if (left || !operation.name) continue
    for (const line of dependents.get(operation.name) ?? [])
      if (!missing.has(line)) missing.set(line, { name: operation.name, root })
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

/**
 * Returns lines with those first that others refer to, where that is possible, because such a batch is written much
 * faster. Lines about the same entity keep their order.
 */
export function sortByReferences(model: Model, lines: PlannedLine[]): PlannedLine[] {
  if (!model.fields.some(({ target }) => target === model.key)) return lines
  const named = lines.filter(({ operation }) => operation.name)
  const byName = new Map(named.map((line) => [line.operation.name, line]))
  if (byName.size < named.length) return lines
  const [entered, sorted] = [new Set<PlannedLine>(), new Set<PlannedLine>()]
  const stack = lines.toReversed()
  while (stack.length) {
    const line = stack.at(-1)!
    if (entered.has(line)) {
      sorted.add(stack.pop()!)
      continue
    }
    entered.add(line)
    for (const { identifier } of listOwnReferences(model, line.operation)) {
      const target = byName.get(identifier)
      if (target && !entered.has(target)) stack.push(target)
    }
  }
  return [...sorted]
}

/** Returns lines in groups that refer to each other, or are about the same entity. */
export function groupByReferences(model: Model, lines: PlannedLine[]): PlannedLine[][] {
  const parents = new Map<string, string>()
  const find = (name: string): string => {
    let root = name
    for (let next = parents.get(root); next !== undefined && next !== root; next = parents.get(root)) root = next
    for (let at = name; at !== root; ) {
      const next = parents.get(at) ?? root
      parents.set(at, root)
      at = next
    }
    return root
  }
  const nameOf = ({ line, operation }: PlannedLine) => operation.name || `line ${line}`
  for (const line of lines)
    for (const { identifier } of listOwnReferences(model, line.operation))
      parents.set(find(nameOf(line)), find(identifier))
  return [...Map.groupBy(lines, (line) => find(nameOf(line))).values()]
}
