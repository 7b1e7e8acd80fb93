import type { PublicCtx } from '../../accounts/context'
import { WorkTurns } from '../../accounts/work-turns'
import { getModel } from '../../blueprints/blueprints'
import { requireRowScope, rowScopeOf } from '../../blueprints/permissions'
import { toChunks } from '../../core/chunks'
import { badRequest, type FieldError, Problem } from '../../core/problem'
import { createJsonResponse } from '../../core/response'
import { assertQuotaLeft, openQuota } from '../../limits/quota-check'
import type { Tx } from '../../storage/port'
import { headersOf, parseResponseShape } from '../request'
import { createSerializer } from '../store/serializer'
import { getReadableScopes } from '../write/constraints'
import { deleteInTransaction } from '../write/deletion'
import { parseIdentifier } from '../write/document'
import { limitGuestWrites } from '../write/guest-rate-limit'
import type { ReferenceGraph } from '../write/recomputation'
import { rethrowConflict, retryOnStale } from '../write/retry'
import { BatchExecutor, type OperationResult } from './batch-executor'
import { OPERATION_TYPES, type Operation, resolveFilesOf } from './operation'
import { Precomputation } from './precomputation'

const MAX_OPERATIONS = 1_000 // operations
const RESULTS_PER_SLICE = 100
const WRITE_OPERATIONS = ['create', 'update', 'delete'] as const

/**
 * Executes operations on the entities of a blueprint in one transaction: all of them, or none when one is rejected. The
 * error is that of the rejected operation, with its `index` in the details. @throws 400, 401, 403, 404, 409, 413
 */
export async function batch(ctx: PublicCtx, key: string, body: unknown, request: Request): Promise<Response> {
  const model = await getModel(ctx, key)
  if (!WRITE_OPERATIONS.some((one) => rowScopeOf(model, one, ctx.actor))) requireRowScope(model, 'create', ctx.actor)
  const operations = parseOperations(body)
  if (operations.length) limitGuestWrites(ctx, key, request, operations.length)
  return retryOnStale(ctx, key, async (model, { write }) => {
    const shape = parseResponseShape(model, ctx, request)
    const files = await resolveFilesOf(ctx, model, operations)
    const readable = { scopes: await getReadableScopes(ctx, model), files }
    if (shape.related)
      badRequest({
        path: '$populate',
        message: '$populate is not supported for batches. Read the entities to populate them.',
      })
    const precomputation = new Precomputation(model, ctx, operations)
    if (operations.some(({ op }) => op !== 'delete')) await assertQuotaLeft(ctx, 'storage')
    using reservation = await openQuota(ctx, 'entities', operations.filter(mayCreate).length)
    let executor: BatchExecutor | undefined
    const work = (tx: Tx, references?: ReferenceGraph) => {
      const options = { references, reservation }
      executor = new BatchExecutor(tx, model, ctx, readable, operations, precomputation, options)
      return executor.execute()
    }
    const removes = operations.some(({ op }) => op === 'delete')
    const outcomes = await precomputation
      .runWrite(() => (removes ? deleteInTransaction(ctx, work) : write((tx) => work(tx))))
      .catch((error) => throwForOperation(error, executor?.index ?? 0))
    reservation?.keep()
    const writeWhole = createSerializer(model, ctx.actor, shape)
    const writeResult = ({ op, identifier, status, row, sent }: OperationResult) => {
      const start = JSON.stringify({ op, identifier, status })
      if (!row) return start
      const write = sent ? createSerializer(model, ctx.actor, { ...shape, select: sent }) : writeWhole
      return `${start.slice(0, -1)},"entity":${write(row[0])}}`
    }
    const turns = new WorkTurns(ctx, request)
    const results: string[] = []
    for (const chunk of toChunks(outcomes, RESULTS_PER_SLICE))
      await turns.run(() => results.push(...chunk.map(writeResult)))
    return createJsonResponse(`{"results":[${results}]}`, headersOf(shape))
  })
}

const mayCreate = ({ op }: Operation) => op === 'create' || op === 'upsert'

function parseOperations(body: unknown): Operation[] {
  const operations = (body as { operations?: unknown } | null)?.operations
  if (!Array.isArray(operations)) return badRequest({ path: '/operations', message: 'Send {"operations": […]}.' })
  if (operations.length > MAX_OPERATIONS)
    badRequest({ path: '/operations', message: `A batch can have at most ${MAX_OPERATIONS} operations. Split it.` })
  return operations.map((operation, index) => parseOperation(operation, `/operations/${index}`))
}

function parseOperation(operation: unknown, at: string): Operation {
  const { op, identifier, data = {} } = (operation ?? {}) as Record<string, unknown>
  if (!OPERATION_TYPES.includes(op as Operation['op']))
    badRequest({ path: `${at}/op`, message: `Unknown op. Use one of: ${OPERATION_TYPES.join(', ')}.` })
  const inner = (data as Record<string, unknown> | null)?.identifier
  const name = parseIdentifier(identifier ?? inner, `${at}/identifier`) ?? ''
  // For an update, the name of the operation counts; the identifier inside the data is ignored, as in a PUT.
  if (op !== 'create' && !name)
    badRequest({ path: `${at}/identifier`, message: `identifier is required to ${op} an entity.` })
  if (op === 'create' && identifier !== undefined && inner !== undefined && identifier !== inner)
    badRequest({ path: `${at}/identifier`, message: 'identifier is given twice with different values.' })
  return { op: op as Operation['op'], name, data, _id: Bun.randomUUIDv7() }
}

/** Returns the index of the rejected operation and its error details, with paths in the body of the batch. */
function toDetails(index: number, details: unknown) {
  if (!Array.isArray(details)) return { index, ...(details !== undefined && { details }) }
  const at = `/operations/${index}/data`
  return { index, details: (details as FieldError[]).map((flaw) => ({ ...flaw, path: at + flaw.path })) }
}

/** Throws the error of one operation as the error of the batch. */
function throwForOperation(error: unknown, index: number): never {
  try {
    rethrowConflict(error)
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.status >= 500) throw problem
    const { status, code, message, more } = problem
    throw new Problem(status, code, message, { ...more, details: toDetails(index, more.details) })
  }
}
