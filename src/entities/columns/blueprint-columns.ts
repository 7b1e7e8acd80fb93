import type { Model } from '../../blueprints/model'
import { BoundedMap } from '../../core/bounded-map'
import type { Db } from '../../storage/port'
import { isReachable, readChangesAtOnce, readPositionAtOnce } from '../changes/tracked-changes'
import { isCreated } from '../query/order'
import { isOfBlueprintSql } from '../query/scans'
import { valueSql } from '../query/sql-conditions'
import { type Target, targetKey } from '../query/target'
import { and, commaList, fragment, oneOf, type SqlFragment } from '../store/sql-fragments'
import type { Column } from './column'
import { ColumnTable, type EntityValues } from './column-table'

const CHANGES_PER_READ = 500 // about so many changes are read together
const ENTITIES_PER_STEP = 50 // of those that changed; more are read in steps
const MIN_VALUE_BYTES = 1 << 18
const MAX_QUERY_COUNTS = 1_000
const REFUSED_MS = 60_000 // until what takes too much room is looked at again
const WANTED_MS = 5_000 // for which targets of a query are read together with those of others
const MAX_WANTED = 8

/** Reads the values of some targets of all entities, by time. */
type Scan = { targets: Target[]; columns: Column[]; after: [created: number, seq: number]; read: number }
/** How many entities a step reads, how many a blueprint may have, and how much a column may hold. */
export type StepLimits = { rows: number; maxRows: number; maxBytes: number }
/** Changed entities that remain to be read, and the last of their changes. */
type Backlog = { entities: number[]; number: number }
type StepResult = 'more' | 'done' | 'failed'

/** The columns of a blueprint that are in memory, and how they get there. */
export class BlueprintColumns {
  usedAt = performance.now()
  /** How many queries came that the columns could have answered, by their targets. */
  readonly queryCounts = new BoundedMap<string, number>(MAX_QUERY_COUNTS)
  #table: ColumnTable | undefined
  #targets = new Map<string, Target>()
  /** The targets of the latest queries that lacked columns, and when these came. */
  #wanted = new BoundedMap<string, { target: Target; at: number }>(MAX_WANTED)
  #scan: Scan | undefined
  #sorting: Generator<void, void> | undefined
  #backlog: Backlog | undefined
  /** How many entities there were when the first columns were read. */
  #count = 0
  #refusedUntil = 0
  /** What it held when its room was last looked at. */
  #checkedBytes = 0
  /** Until when targets are not read, because their values take too much room. */
  #refusedTargets = new Map<string, number>()

  constructor(
    private readonly version: number,
    private readonly form: number,
  ) {}

  isOf = (version: number, form: number) => this.version === version && this.form === form

  /** Tells whether these are columns of a later version. */
  isAfter = (version: number) => this.version > version

  get bytes() {
    return this.#table?.bytes ?? 0
  }

  /** Tells whether these targets are not read now, because of too many entities or too large values. */
  refuses(targets: Target[]): boolean {
    const time = performance.now()
    return this.#refusedUntil > time || targets.some((one) => (this.#refusedTargets.get(targetKey(one)) ?? 0) > time)
  }

  /** Frees room: has what is being read not read again for a while, or else all columns. */
  refuse() {
    if (this.#scan?.targets.length && this.#table?.rows) return this.#refuseTargets(this.#scan.targets)
    this.#refusedUntil = performance.now() + REFUSED_MS
    this.drop()
  }

  /** Tells whether it holds more than at the last call. With more entities than allowed, it is refused. */
  hasGrown(maxRows: number): boolean {
    if (this.#table && this.#table.length > maxRows) this.refuse()
    const { bytes } = this
    const hasGrown = bytes > this.#checkedBytes
    this.#checkedBytes = bytes
    return hasGrown
  }

  drop() {
    this.#table = this.#scan = this.#sorting = this.#backlog = undefined
    this.#targets.clear()
  }

  /** Returns the values of these targets as they are now, unless reading them takes steps. */
  open(db: Db, model: Model, targets: Target[]): ColumnTable | undefined {
    if (!this.has(targets)) return
    if (this.#hasBacklog(db, model) || this.#follow(db, model) !== 'done') return
    this.#table!.sortFurther()
    return this.#table
  }

  has = (targets: Target[]) =>
    !!this.#table?.rows && targets.every((one) => isCreated(one) || this.#table!.columns.get(targetKey(one))?.rows)

  /** Tells whether a target has texts of which the columns have only the beginning, so that their order is unknown. */
  hasLongTexts = (target: Target) => !!this.#table?.columns.get(targetKey(target))?.hasLongTexts

  /** Notes that a query needs these targets, so that one pass reads those of all queries that wait. */
  want(targets: Target[]) {
    for (const target of targets) this.#wanted.set(targetKey(target), { target, at: performance.now() })
  }

  /** Takes a step of a few ms towards having these targets. */
  step(db: Db, model: Model, targets: Target[], limits: StepLimits): StepResult {
    if (this.refuses(targets)) return 'failed'
    if (this.#sorting) return this.#sortOn()
    if (this.#scan) return this.#scanOn(db, model, limits)
    const followed = this.#table ? this.#follow(db, model) : 'done'
    if (followed !== 'done') return followed
    if (this.has(targets)) return 'done'
    return this.#beginScan(db, model, targets, limits)
  }

  #beginScan(db: Db, model: Model, targets: Target[], { maxRows }: StepLimits): StepResult {
    const position = readPositionAtOnce(db, model.key)
    if (!position) return 'failed'
    if (!this.#table) {
      const [[count] = []] =
        db.queryAtOnce!('select count(*) from (select 1 from entities e where e.blueprint = ? limit ?)', [
          model.code,
          maxRows + 1,
        ]) ?? []
      if (count === undefined) return 'failed'
      this.#count = Number(count)
      if (this.#count > maxRows) {
        this.refuse()
        return 'failed'
      }
    }
    this.#table ??= new ColumnTable(position)
    const missing = new Map([...this.#listWanted(), ...targets].map((one) => [targetKey(one), one]))
    const scan: Scan = { targets: [], columns: [], after: [Number.MIN_SAFE_INTEGER, 0], read: 0 }
    for (const [key, target] of missing) {
      if (isCreated(target) || this.#table.columns.has(key)) continue
      this.#targets.set(key, target)
      scan.targets.push(target)
      scan.columns.push(this.#table.addColumn(key))
    }
    this.#scan = scan
    return 'more'
  }

  #listWanted() {
    const since = performance.now() - WANTED_MS
    return [...this.#wanted.values()].flatMap(({ target, at }) =>
      at < since || this.refuses([target]) ? [] : [target],
    )
  }

  #scanOn(db: Db, model: Model, { rows: limit, maxBytes }: StepLimits): StepResult {
    const { targets, columns, after } = this.#scan!
    const where = fragment('e.blueprint = ? and (e.created, e.seq) > (?, ?)', model.code, ...after)
    const entities = readValues(db, targets, where, `order by e.created, e.seq limit ${limit}`)
    if (!entities) return 'failed'
    this.#table!.fill(columns, entities)
    this.#scan!.read += entities.length
    // How much it would hold in the end, if the rest is like the beginning.
    const share = Math.min(1, Math.max(1, this.#scan!.read) / this.#count)
    for (const [at, column] of columns.entries())
      if (column.valueBytes > maxBytes * share + MIN_VALUE_BYTES) {
        this.#refuseTargets([targets[at]!])
        return 'more'
      }
    const last = entities.at(-1)
    if (last) this.#scan!.after = [last[1], last[0]]
    if (entities.length < limit) this.#sorting = this.#sort(columns)
    return 'more'
  }

  /** Stops reading some targets, and all others that are read beside them. */
  #refuseTargets(refused: Target[]) {
    for (const one of refused) this.#refusedTargets.set(targetKey(one), performance.now() + REFUSED_MS)
    for (const one of this.#scan?.targets ?? []) {
      this.#table!.columns.delete(targetKey(one))
      this.#targets.delete(targetKey(one))
    }
    this.#scan = this.#sorting = undefined
    if (!this.#table!.rows) this.#table = undefined
  }

  *#sort(columns: Column[]) {
    const table = this.#table!
    table.sortByTime()
    for (const column of columns) {
      yield* column.sort()
      table.sortBy(column)
      yield
    }
  }

  #sortOn(): StepResult {
    if (this.#sorting!.next().done) this.#sorting = this.#scan = undefined
    return 'more'
  }

  /** Tells whether so many entities have changed that reading them takes steps. */
  #hasBacklog(db: Db, { key }: Model): boolean {
    const { number } = this.#table!.position
    const current = readPositionAtOnce(db, key)
    if (current && current.number !== number) this.#backlog ??= readChangesAtOnce(db, key, number, CHANGES_PER_READ)
    return (this.#backlog?.entities.length ?? 0) > ENTITIES_PER_STEP
  }

  /** Reads the entities that have changed since the last read, or some of many. */
  #follow(db: Db, model: Model): StepResult {
    const table = this.#table!
    const current = readPositionAtOnce(db, model.key)
    if (!current) return 'failed'
    if (current.started === table.position.started && current.number === table.position.number) return 'done'
    if (!isReachable(table.position, current) || table.isSparse) {
      this.drop()
      return 'more'
    }
    this.#backlog ??= readChangesAtOnce(db, model.key, table.position.number, CHANGES_PER_READ)
    if (!this.#backlog) return 'failed'
    const seqs = this.#backlog.entities.slice(0, ENTITIES_PER_STEP)
    const changed = and([oneOf('e.seq', seqs), isOfBlueprintSql(model)])
    const entities = readValues(db, [...this.#targets.values()], changed)
    if (!entities) return 'failed'
    table.change(seqs, entities)
    this.#backlog.entities = this.#backlog.entities.slice(seqs.length)
    if (this.#backlog.entities.length) return 'more'
    const { number } = this.#backlog
    this.#backlog = undefined
    table.position = { started: current.started, number }
    return number === current.number ? 'done' : 'more'
  }
}

function readValues(db: Db, targets: Target[], where: SqlFragment, rest = ''): EntityValues[] | undefined {
  const selected = commaList([fragment('e.seq'), fragment('e.created'), ...targets.map(valueSql)])
  return db.queryAtOnce?.(`select ${selected.sql} from entities e where ${where.sql} ${rest}`, [
    ...selected.params,
    ...where.params,
  ]) as EntityValues[] | undefined
}
