import type { OpenCtx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import type { Model, ModelField } from '../../blueprints/model'
import { mayRead, mayWrite, reachOf } from '../../blueprints/rules'
import type { Operation } from '../../blueprints/shapes'
import { invalid, Problem } from '../../core/problem'
import type { Asking, Call } from '../../plugins/lambdas/calls/calls'
import * as entities from '../../plugins/lambdas/calls/entities'
import type { Calling, Tool, ToolKind } from './tool'

const FEW = 20 // entities, where the model asks for no number
const MOST = 100
const TIME = 60_000 // ms

/** Tools for the entities of blueprints: of each, for what its rules allow the caller to do. */
export const blueprints: ToolKind = async (ctx, keys) => {
  const models = await Promise.all(keys.map((key) => Promise.resolve(modelOf(ctx, key)).catch(unlessGone)))
  return models.flatMap((model) => (model ? toolsFor(ctx, model) : []))
}

/** A blueprint that was removed meanwhile is no tool any more. */
function unlessGone(error: unknown): undefined {
  if (!(error instanceof Problem && error.status === 404)) throw error
}

type Part = { verb: string; operation: Operation; does: string; parameters: object; run: Tool['run'] }

function toolsFor({ actor }: OpenCtx, model: Model): Tool[] {
  const { key, name, description } = model
  const [read, write] = [model.fields.filter((one) => mayRead(one, actor)), writable(model, actor)]
  const identifier = { type: 'string', description: 'its identifier, or _id' }
  const required = write.filter((one) => one.required && one.default === undefined).map((one) => one.key)
  const byIdentifier =
    (call: Call): Tool['run'] =>
    async (calling, { identifier, ...rest }) => {
      const unknown = Object.keys(rest).map((path) => ({ path, message: 'This tool takes only an identifier.' }))
      if (unknown.length) invalid(...unknown)
      return call(askingFor(calling), key, identifier)
    }
  const parts: Part[] = [
    {
      ...{ verb: 'find', operation: 'read', does: 'Finds entities' },
      parameters: object({ query: queryOf(read) }),
      run: (calling, given) => entities.find(askingFor(calling), key, asked(given)),
    },
    {
      ...{ verb: 'get', operation: 'read', does: 'Reads one entity' },
      parameters: object({ identifier }, ['identifier']),
      run: byIdentifier(entities.get),
    },
    {
      ...{ verb: 'create', operation: 'create', does: 'Makes an entity' },
      parameters: object(propertiesOf(write), required),
      run: (calling, given) => entities.create(askingFor(calling), key, given),
    },
    {
      ...{ verb: 'update', operation: 'update', does: 'Changes what is given of one entity' },
      parameters: object({ identifier, ...propertiesOf(write) }, ['identifier']),
      run: (calling, { identifier, ...entity }) => entities.update(askingFor(calling), key, identifier, entity),
    },
    {
      ...{ verb: 'remove', operation: 'delete', does: 'Removes one entity' },
      parameters: object({ identifier }, ['identifier']),
      run: byIdentifier(entities.remove),
    },
  ]
  return parts
    .filter(({ operation }) => reachOf(model, operation, actor))
    .map(({ verb, does, parameters, run }) => ({
      name: named(`${verb}_${key}`),
      description: `${does} of "${name}".${description ? ` ${description.slice(0, 500)}` : ''}`,
      parameters: parameters as Tool['parameters'],
      run,
    }))
}

/**
 * The query that a model means: some say it beside `query`. What is in no query is refused with the rest, so that it is
 * asked again, and answered rightly. @throws 400
 */
function asked({ query, ...beside }: Record<string, unknown>): Record<string, unknown> {
  const within = query ?? {}
  if (typeof within !== 'object' || Array.isArray(within))
    return invalid({ path: 'query', message: 'A query is an object: {"price": {"$lt": 20}, "$sort": "-created"}.' })
  const twice = Object.keys(beside).filter((path) => Object.hasOwn(within, path))
  if (twice.length) invalid(...twice.map((path) => ({ path, message: 'Say this once, in the query.' })))
  const { $limit = FEW, ...rest } = { ...beside, ...within } as Record<string, unknown>
  return { ...rest, $limit: Number($limit) > MOST ? MOST : $limit }
}

/** Names of tools are shorter than a key may be. */
const named = (name: string) => (name.length <= 64 ? name : `${name.slice(0, 55)}_${Bun.hash.crc32(name).toString(16)}`)

const writable = ({ fields, computed }: Model, actor: OpenCtx['actor']) =>
  fields.filter((one) => mayWrite(one, actor) && !Object.hasOwn(computed ?? {}, one.key))

const object = (properties: object, required: string[] = []) => ({ type: 'object', properties, required })

const propertiesOf = (fields: ModelField[]) => Object.fromEntries(fields.map((one) => [one.key, schemaOf(one)]))

/** What fits a field, in the words of JSON Schema. */
function schemaOf({ type, kind, title, description, multi, schema, target, ...field }: ModelField) {
  const simple = /^(string|number|boolean)$/.test(kind.typescript)
  const told = [
    title,
    description,
    target && `the identifier of an entity of "${target}"`,
    type !== kind.typescript && type,
  ]
  const one = {
    ...(simple ? { type: kind.typescript } : (schema ?? { type: 'object' })),
    ...(field.enum && { enum: field.enum }),
    ...(!multi && told.some(Boolean) && { description: told.filter(Boolean).join('; ') }),
  }
  return multi ? { type: 'array', items: one, description: told.filter(Boolean).join('; ') } : one
}

const queryOf = (fields: ModelField[]) => ({
  type: 'object',
  description:
    `What they must be like: {"<field>": value} or {"<field>": {"$lt": value}} with $lt, $gt, $lte, $gte, $ne, $in, $like; ` +
    `"$q": words that are in them, "$sort": "-<field>", "$limit": ${FEW} unless told, at most ${MOST}, "$skip". ` +
    `Fields: ${fields.map(({ key, type }) => `${key} (${type})`).join(', ')}.`.slice(0, 4_000),
})

const askingFor = ({ ctx, request }: Calling): Asking => ({
  ...{ ctx, request, deadline: performance.now() + TIME, fetches: 0 },
})
