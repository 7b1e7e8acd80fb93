import { and, eq, gte, lt } from 'drizzle-orm'
import { config } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { ConfigError } from '../core/config-error'
import { getErrorChain, logError } from '../core/log'
import { notFound, Problem } from '../core/problem'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../storage/pagination'
import { registry } from '../tenancy/registry'
import { operatorTasks } from '../tenancy/tables'
import type { OperatorTask } from './shapes'
import { prepareTask, type TaskInput, type TaskKindName, taskKinds } from './tasks'
import { assertUndisturbed } from './tasks/conflict'
import type { PreparedTask } from './tasks/task-kind'

const ANSWER_DEADLINE_MS = 5_000 // a task that takes longer is answered while it runs
const PROGRESS_INTERVAL_MS = 500
const HEARTBEAT_MS = 5_000
const INTERRUPTED_AFTER_MS = 30_000 // without a sign of life of the process that runs the task

type TaskRow = typeof operatorTasks.$inferSelect

/** What this process does: how to end it early, and when it has ended. */
const runningTasks = new Map<string, { kind: TaskKindName; controller: AbortController; ended: Promise<void> }>()

const SORTABLE_COLUMNS = { _id: operatorTasks._id, created: operatorTasks.created }

/** Returns a page of tasks, latest first. */
export async function list(query: GrowingListQuery & { tenant?: string; kind?: string }) {
  const page = parsePage(query, SORTABLE_COLUMNS)
  const isAskedFor = and(
    query.tenant ? eq(operatorTasks.tenant, query.tenant) : undefined,
    query.kind ? eq(operatorTasks.kind, query.kind) : undefined,
  )
  const rows = await applyPage(page, registry.db.select().from(operatorTasks).where(and(isAskedFor, page.after)))
  return toGrowingListPage(page, rows, () => registry.db.$count(operatorTasks, isAskedFor), toTask)
}

/** Returns a task. @throws 404 TASK_NOT_FOUND */
export async function get(id: string): Promise<OperatorTask> {
  const row = await registry.db.select().from(operatorTasks).where(eq(operatorTasks._id, id)).get()
  return row ? toTask(row) : notFound('task')
}

/**
 * Starts a task. Returns it once it has ended, or after five seconds while it still runs.
 * @throws 409 TASK_RUNNING when another task would disturb it, or it another one
 * @throws what the kind refuses at once
 */
export async function start<Name extends TaskKindName>(kind: Name, tenant: string, input: TaskInput<Name>) {
  const id = await begin(kind, tenant, input)
  await Promise.race([runningTasks.get(id)?.ended, Bun.sleep(ANSWER_DEADLINE_MS)])
  return get(id)
}

/** Ends the tasks of this process at their next safe moments. */
export function abandonTasks() {
  for (const { kind, controller } of runningTasks.values()) controller.abort(toStoppedProblem(kind))
}

const toStoppedProblem = (kind: TaskKindName) => new Problem(503, 'SERVER_STOPPED', taskKinds[kind].stoppedMessage)

/** Resolves when no task of this process is running any more. */
export const waitForTasks = () => Promise.all([...runningTasks.values()].map(({ ended }) => ended))

async function begin<Name extends TaskKindName>(kind: Name, tenant: string, input: TaskInput<Name>) {
  const task = await prepareTask(kind, tenant, input)
  const [_id, controller] = [Bun.randomUUIDv7(), new AbortController()]
  try {
    await insertRunning({ _id, kind, tenant, input })
  } catch (error) {
    await task[Symbol.asyncDispose]()
    throw error
  }
  const ended = runAndRecord(_id, task, controller.signal).finally(() => runningTasks.delete(_id))
  runningTasks.set(_id, { kind, controller, ended })
  return _id
}

/**
 * Records a task that begins, and removes those that are older than events are kept. The registry has one writer at a
 * time, so of two tasks that would disturb each other one is refused, also when two servers begin them.
 * @throws 409 TASK_RUNNING
 */
const insertRunning = (task: Pick<TaskRow, '_id' | 'kind' | 'tenant' | 'input'>) =>
  registry.write(async (tx) => {
    const time = now()
    const created = toIsoString(time)
    const isOld = lt(operatorTasks.created, toIsoString(time - config.ATOLL_EVENT_RETENTION * DAY_MS))
    const silentSince = toIsoString(time - INTERRUPTED_AFTER_MS)
    const isSilent = lt(operatorTasks.updated, silentSince)
    const isRunning = and(eq(operatorTasks.status, 'running'), gte(operatorTasks.updated, silentSince))
    assertUndisturbed(task, await tx.select().from(operatorTasks).where(isRunning))
    await tx.delete(operatorTasks).where(and(isOld, isSilent))
    await tx.insert(operatorTasks).values({ ...task, status: 'running', created, updated: created })
  })

async function runAndRecord(id: string, task: PreparedTask<Record<string, unknown>>, signal: AbortSignal) {
  const progress = recordProgress(id)
  const outcome = await runToOutcome(task, { ...progress, signal })
  await progress.stop()
  // Without this record it reads as interrupted, which asks the operator to start it again.
  await record(id, { ...outcome, finished: toIsoString(now()) }).catch((cause) =>
    logError('TASK_NOT_RECORDED', { task: id, cause }),
  )
}

async function runToOutcome(
  task: PreparedTask<Record<string, unknown>>,
  control: Parameters<typeof task.run>[0],
): Promise<Pick<TaskRow, 'status'> & Partial<TaskRow>> {
  try {
    await using held = task
    return { status: 'succeeded', result: await held.run(control) }
  } catch (error) {
    return { status: 'failed', problem: explainTaskFailure(error) }
  }
}

function explainTaskFailure(error: unknown): TaskRow['problem'] {
  if (error instanceof Problem) return { code: error.code, message: error.message }
  const setting = getErrorChain(error).find((cause) => cause instanceof ConfigError)
  if (setting) return { code: 'BAD_SETTING', message: setting.message }
  logError('TASK_FAILED', { cause: error })
  return { code: 'INTERNAL', message: 'It failed unexpectedly. The log of the server has the reason.' }
}

/** Returns receivers of the progress of a task. What they receive is written now and then, as is a sign of life. */
function recordProgress(id: string) {
  let [latest, written]: TaskRow['progress'][] = [null, null]
  let writtenAt = performance.now()
  let writing: Promise<unknown> = Promise.resolve()
  let isWriting = false
  const write = async () => {
    const isDue = latest !== written || performance.now() - writtenAt > HEARTBEAT_MS
    if (isWriting || !isDue) return
    ;[isWriting, written, writtenAt] = [true, latest, performance.now()]
    writing = record(id, { progress: latest }).catch(() => {}) // the next sign of life is soon
    await writing
    isWriting = false
  }
  const timer = setInterval(write, PROGRESS_INTERVAL_MS)
  return {
    onProgress(message: string) {
      latest = { message, fraction: latest?.fraction ?? null }
    },
    onFraction(fraction: number | null) {
      const rounded = fraction === null ? null : Math.round(fraction * 1_000) / 1_000
      latest = { message: latest?.message ?? '', fraction: rounded }
    },
    /** Writes the last progress, and nothing after it. */
    async stop() {
      clearInterval(timer)
      await writing
      await write()
    },
  }
}

function toTask(row: TaskRow): OperatorTask {
  const isInterrupted = row.status === 'running' && Date.parse(row.updated) < now() - INTERRUPTED_AFTER_MS
  const task = row as OperatorTask // the kind wrote it
  if (!isInterrupted) return task
  const { code, message } = toStoppedProblem(task.kind)
  return { ...task, status: 'interrupted', problem: { code, message } }
}

const record = (id: string, changes: Partial<TaskRow>) =>
  registry.write((tx) =>
    tx
      .update(operatorTasks)
      .set({ ...changes, updated: toIsoString(now()) })
      .where(eq(operatorTasks._id, id)),
  )
