import type { OpenCtx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import { reachOf, reachOrRefuse } from '../../blueprints/rules'
import { jsonAnswer } from '../../core/headers'
import { type Flaw, invalid, Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { identifierOf } from '../document'
import { formOf, headersOf, sightOf, taken, upToDate } from '../entities'
import { throttleGuests } from '../guests'
import { removing, type Ties } from '../removal'
import { writer } from '../wire'
import { Ahead } from './ahead'
import { OPS, type Operation } from './operation'
import { Run } from './run'

const MOST = 1_000 // operations
const WRITES = ['create', 'update', 'delete'] as const

/**
 * Does many things to the entities of a blueprint in one transaction: all of them, or none when one is refused. That one's
 * refusal is the answer, with its `index` in the details.
 */
export async function batch(ctx: OpenCtx, key: string, body: unknown, request: Request): Promise<Response> {
  const model = await modelOf(ctx, key)
  if (!WRITES.some((one) => reachOf(model, one, ctx.actor))) reachOrRefuse(model, 'create', ctx.actor)
  const operations = readOperations(body)
  if (operations.length) throttleGuests(ctx, key, request, operations.length)
  return upToDate(ctx, key, async (model, { write }) => {
    const [form, sight] = [formOf(model, ctx, request), await sightOf(ctx, model)]
    if (form.related)
      invalid({
        path: '$populate',
        message: 'A batch shows relations as they are. Read the entities to populate them.',
      })
    const ahead = new Ahead(model, ctx, operations)
    let run: Run | undefined
    const work = (tx: Tx, references?: Ties) => {
      run = new Run(tx, model, ctx, sight, operations, ahead, references)
      return run.done()
    }
    const removes = operations.some(({ op }) => op === 'delete')
    const done = await ahead
      .through(() => (removes ? removing(ctx, work) : write((tx) => work(tx))))
      .catch((error) => refuse(error, run?.at ?? 0))
    const whole = writer(model, ctx.actor, form)
    const results = done.map(({ op, identifier, status, row, sent }) => {
      const start = JSON.stringify({ op, identifier, status })
      if (!row) return start
      const write = sent ? writer(model, ctx.actor, { ...form, select: sent }) : whole
      return `${start.slice(0, -1)},"entity":${write(row[0])}}`
    })
    return jsonAnswer(`{"results":[${results}]}`, headersOf(form))
  })
}

function readOperations(body: unknown): Operation[] {
  const operations = (body as { operations?: unknown } | null)?.operations
  if (!Array.isArray(operations)) return invalid({ path: '/operations', message: 'Send {"operations": […]}.' })
  if (operations.length > MOST)
    invalid({ path: '/operations', message: `A batch has at most ${MOST} operations. Send several.` })
  return operations.map((operation, index) => readOperation(operation, `/operations/${index}`))
}

function readOperation(operation: unknown, at: string): Operation {
  const { op, identifier, data = {} } = (operation ?? {}) as Record<string, unknown>
  if (!OPS.includes(op as Operation['op']))
    invalid({ path: `${at}/op`, message: `Unknown op. Use one of: ${OPS.join(', ')}.` })
  const inner = (data as Record<string, unknown> | null)?.identifier
  const name = identifierOf(identifier ?? inner, `${at}/identifier`) ?? ''
  // An update is of what it names; the identifier inside of an entity that was read is ignored, as in a PUT.
  if (op !== 'create' && !name) invalid({ path: `${at}/identifier`, message: `Say which entity to ${op}.` })
  if (op === 'create' && identifier !== undefined && inner !== undefined && identifier !== inner)
    invalid({ path: `${at}/identifier`, message: 'identifier is given twice, with different values.' })
  return { op: op as Operation['op'], name, data, _id: Bun.randomUUIDv7() }
}

/** Which operation was refused, and what is wrong with it, with paths in the body of the batch. */
function detailsOf(index: number, details: unknown) {
  if (!Array.isArray(details)) return { index, ...(details !== undefined && { details }) }
  const at = `/operations/${index}/data`
  return { index, details: (details as Flaw[]).map((flaw) => ({ ...flaw, path: at + flaw.path })) }
}

/** The refusal of one operation as that of all. */
function refuse(error: unknown, index: number): never {
  try {
    taken(error)
  } catch (told) {
    if (!(told instanceof Problem) || told.status >= 500) throw told
    const { status, code, message, more } = told
    throw new Problem(status, code, message, { ...more, details: detailsOf(index, more.details) })
  }
}
