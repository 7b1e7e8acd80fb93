import { initialProgress } from '../../blueprints/cutover'
import type { DryRunReport } from '../../blueprints/entity-store'
import type { Model } from '../../blueprints/model'
import type { SchemaDiff } from '../../blueprints/schema-diff'
import type { BlueprintChangeProblem } from '../../blueprints/shapes'
import { yieldToEventLoop } from '../../core/event-loop'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { TimePosition } from '../query/entity-slices'
import type { Doc } from '../store/doc'
import { fieldLabel } from '../store/index-keys'
import { extractDocumentJson } from '../store/serializer'
import type { AlterationPlan, TransformError } from '../write/pending-document'
import { type MarkedEntity, readNextEntities } from './entity-scan'
import { type TransformedEntity, transformEntity } from './transform'

const MAX_EXAMPLES = 10

/** Reports what an alteration would do to the entities of a blueprint, without changing anything. */
export async function surveyChange({ db }: Tenant, model: Model, next: Model, diff: SchemaDiff): Promise<DryRunReport> {
  const plan: AlterationPlan = { diff, next }
  const report: DryRunReport = { entities: 0, breaking: 0, rewritten: 0, problems: [] }
  if (!diff.needsBackfill) return { ...report, entities: (await initialProgress(db, model.key)).total }
  const duplicates = newUniqueFields(plan).map(({ key, label }) => new DuplicateCounter(key, label))
  const { upto } = await initialProgress(db, model.key)
  for (let from: TimePosition = [-1, -1]; ; ) {
    const { entities, end } = await readNextEntities(db, model, { from, upto })
    if (!end) break
    for (const entity of entities) {
      const before = JSON.parse(extractDocumentJson(entity.shown)) as Doc
      const transformed = await transformEntity(plan, entity, before)
      report.entities++
      if (transformed.errors.length) report.breaking++
      else if (Object.keys(transformed.keys).length || !Bun.deepEquals(transformed.doc, before)) report.rewritten++
      for (const error of transformed.errors) addProblem(report.problems, error, entity)
      if (!transformed.errors.length) for (const counter of duplicates) await counter.add(db, entity, transformed)
      if (diff.recomputes) await yieldToEventLoop()
    }
    from = end
    await yieldToEventLoop()
  }
  const duplicateProblems = duplicates.flatMap((counter) => counter.toProblems())
  return {
    ...report,
    breaking: report.breaking + duplicateProblems.reduce((sum, { count }) => sum + count, 0),
    problems: [...report.problems, ...duplicateProblems],
  }
}

/** Returns the unique fields whose values have not been checked for duplicates yet. */
export const newUniqueFields = ({ diff, next }: AlterationPlan) =>
  next.fields
    .filter(({ key, unique }) => unique && diff.reindexedKeys.has(key))
    .map((field) => ({ key: field.key, number: field.number, label: fieldLabel(field) }))

function addProblem(
  problems: BlueprintChangeProblem[],
  { field, code, message }: TransformError,
  { identifier }: MarkedEntity,
) {
  const existing = problems.find((one) => one.field === field && one.code === code)
  const problem = existing ?? { field, code, message, count: 0, examples: [] }
  if (!existing) problems.push(problem)
  problem.count++
  if (problem.examples.length < MAX_EXAMPLES) problem.examples.push(identifier)
}

type DuplicateGroup = { value: unknown; identifiers: string[] }

/** Collects the values of a field that several entities share. */
class DuplicateCounter {
  // Keyed by hashes, because there may be millions of values. An entity number of 0 means that the group is already
  // known.
  #first = new Map<number | bigint, number>()
  #groups = new Map<string, DuplicateGroup>()
  #count = 0

  constructor(
    private key: string,
    private label: string,
  ) {}

  async add(db: Db, { seq, identifier }: MarkedEntity, { doc, keys }: TransformedEntity) {
    const key = keys[this.label]
    if (typeof key !== 'string') return
    const hash = Bun.hash(key)
    const first = this.#first.get(hash)
    this.#first.set(hash, first === undefined ? seq : 0)
    if (first === undefined) return
    this.#count += first ? 2 : 1
    const group = this.#groups.get(key) ?? { value: doc[this.key], identifiers: [] }
    if (first && this.#groups.size < MAX_EXAMPLES) {
      const [row] = await db.query('select identifier from entities where seq = ?', [first])
      if (row) group.identifiers.push(row[0] as string)
      this.#groups.set(key, group)
    }
    if (group.identifiers.length < MAX_EXAMPLES) group.identifiers.push(identifier)
  }

  toProblems(): BlueprintChangeProblem[] {
    if (!this.#count) return []
    const duplicates = [...this.#groups.values()]
    const examples = duplicates.flatMap(({ identifiers }) => identifiers).slice(0, MAX_EXAMPLES)
    return [{ ...duplicateError(this.key), count: this.#count, examples, duplicates }]
  }
}

/** Returns the error for a field that cannot be unique. */
export const duplicateError = (field: string) => ({
  field,
  code: 'DUPLICATE_VALUES',
  message: `"${field}" cannot be unique, because several entities have the same value.`,
})
