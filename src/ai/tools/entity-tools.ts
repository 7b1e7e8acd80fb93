import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model, ModelField } from '../../blueprints/model'
import { mayReadField, mayWriteField, rowScopeOf } from '../../blueprints/permissions'
import type { Operation } from '../../blueprints/shapes'
import { badRequest, Problem } from '../../core/problem'
import * as entities from '../../lambdas/host-api/entities'
import type { CallContext, HostCall } from '../../lambdas/host-api/host-api'
import type { Tool, ToolContext, ToolKind } from './tool'

const DEFAULT_FIND_LIMIT = 20 // entities, if the model sets no $limit
const MAX_FIND_LIMIT = 100
const CALL_TIMEOUT_MS = 60_000 // ms

/** Returns the tools for the entities of blueprints that the rules of each blueprint allow the caller to use. */
export const buildEntityTools: ToolKind = async (ctx, keys) => {
  const models = await Promise.all(keys.map((key) => Promise.resolve(getModel(ctx, key)).catch(ignoreNotFound)))
  return models.flatMap((model) => (model ? toolsOfBlueprint(ctx, model) : []))
}

/** A blueprint that was removed meanwhile offers no tools. */
function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof Problem && error.status === 404)) throw error
}

type EntityOperation = {
  verb: string
  effect: Tool['effect']
  operation: Operation
  summary: string
  parameters: object
  run: Tool['run']
}

function toolsOfBlueprint({ actor }: PublicCtx, model: Model): Tool[] {
  const { key, name, description } = model
  const [readableFields, writableFields] = [
    model.fields.filter((one) => mayReadField(one, actor)),
    listWritableFields(model, actor),
  ]
  const identifier = { type: 'string', description: 'its identifier, or _id' }
  const required = writableFields.filter((one) => one.required && one.default === undefined).map((one) => one.key)
  const byIdentifier =
    (call: HostCall): Tool['run'] =>
    async (toolContext, { identifier, ...rest }) => {
      const unknownKeys = Object.keys(rest).map((path) => ({ path, message: 'This tool accepts only an identifier.' }))
      if (unknownKeys.length) badRequest(...unknownKeys)
      return call(toCallContext(toolContext), key, identifier)
    }
  const operations: EntityOperation[] = [
    {
      ...{ verb: 'find', effect: 'reads', operation: 'read', summary: 'Finds entities' },
      parameters: toObjectSchema({ query: toQuerySchema(readableFields) }),
      run: (toolContext, input) => entities.find(toCallContext(toolContext), key, parseQuery(input)),
    },
    {
      ...{ verb: 'get', effect: 'reads', operation: 'read', summary: 'Reads one entity' },
      parameters: toObjectSchema({ identifier }, ['identifier']),
      run: byIdentifier(entities.get),
    },
    {
      ...{ verb: 'create', effect: 'adds', operation: 'create', summary: 'Creates an entity' },
      parameters: toObjectSchema(toProperties(writableFields), required),
      run: (toolContext, input) => entities.create(toCallContext(toolContext), key, input),
    },
    {
      ...{
        verb: 'update',
        effect: 'overwrites',
        operation: 'update',
        summary: 'Updates the given fields of one entity',
      },
      parameters: toObjectSchema({ identifier, ...toProperties(writableFields) }, ['identifier']),
      run: (toolContext, { identifier, ...entity }) =>
        entities.update(toCallContext(toolContext), key, identifier, entity),
    },
    {
      ...{ verb: 'remove', effect: 'overwrites', operation: 'delete', summary: 'Removes one entity' },
      parameters: toObjectSchema({ identifier }, ['identifier']),
      run: byIdentifier(entities.remove),
    },
  ]
  return operations
    .filter(({ operation }) => rowScopeOf(model, operation, actor))
    .map(({ verb, effect, summary, parameters, run }) => ({
      name: toToolName(`${verb}_${key}`),
      description: `${summary} of "${name}".${description ? ` ${description.slice(0, 500)}` : ''}`,
      parameters: parameters as Tool['parameters'],
      effect,
      run,
    }))
}

/**
 * Returns the query that a model means, for some models put its keys beside `query`. Unknown keys stay in the query, which
 * then is refused, so that the model can correct it.
 * @throws 400 when a key is given twice, or the query is no object
 */
function parseQuery({ query, ...otherKeys }: Record<string, unknown>): Record<string, unknown> {
  const queryObject = query ?? {}
  if (typeof queryObject !== 'object' || Array.isArray(queryObject))
    return badRequest({ path: 'query', message: 'A query is an object: {"price": {"$lt": 20}, "$sort": "-created"}.' })
  const duplicates = Object.keys(otherKeys).filter((path) => Object.hasOwn(queryObject, path))
  if (duplicates.length)
    badRequest(...duplicates.map((path) => ({ path, message: 'This is given twice. Put it into the query only.' })))
  const { $limit = DEFAULT_FIND_LIMIT, ...rest } = { ...otherKeys, ...queryObject } as Record<string, unknown>
  return { ...rest, $limit: Number($limit) > MAX_FIND_LIMIT ? MAX_FIND_LIMIT : $limit }
}

/** Shortens a name to 64 characters, the limit for names of tools; keys of blueprints may be longer. */
const toToolName = (name: string) =>
  name.length <= 64 ? name : `${name.slice(0, 55)}_${Bun.hash.crc32(name).toString(16)}`

const listWritableFields = ({ fields, computed }: Model, actor: PublicCtx['actor']) =>
  fields.filter((one) => mayWriteField(one, actor) && !Object.hasOwn(computed ?? {}, one.key))

const toObjectSchema = (properties: object, required: string[] = []) => ({ type: 'object', properties, required })

const toProperties = (fields: ModelField[]) =>
  Object.fromEntries(fields.map((one) => [one.key, toParameterSchema(one)]))

/** Returns the JSON Schema of a field as a parameter of a tool. */
function toParameterSchema({ type, kind, title, description, multi, schema, target, ...field }: ModelField) {
  const { type: jsonType } = kind.jsonSchema
  const descriptionParts = [
    title,
    description,
    target && `the identifier of an entity of "${target}"`,
    type !== kind.typescript && type,
  ]
  const itemSchema = {
    // The description says which numbers are integers.
    ...(jsonType === 'object'
      ? (schema ?? { type: 'object' })
      : { type: jsonType === 'integer' ? 'number' : jsonType }),
    ...(field.enum && { enum: field.enum }),
    ...(!multi && descriptionParts.some(Boolean) && { description: descriptionParts.filter(Boolean).join('; ') }),
  }
  return multi
    ? { type: 'array', items: itemSchema, description: descriptionParts.filter(Boolean).join('; ') }
    : itemSchema
}

const toQuerySchema = (fields: ModelField[]) => ({
  type: 'object',
  description:
    `The conditions: {"<field>": value} or {"<field>": {"$lt": value}} with $lt, $gt, $lte, $gte, $ne, $in, $like; ` +
    `"$q": words that the entities contain, "$sort": "-<field>", "$limit": default ${DEFAULT_FIND_LIMIT}, at most ${MAX_FIND_LIMIT}, "$skip". ` +
    `Fields: ${fields.map(({ key, type }) => `${key} (${type})`).join(', ')}.`.slice(0, 4_000),
})

const toCallContext = ({ ctx, request }: ToolContext): CallContext => ({
  ...{ ctx, request, deadline: performance.now() + CALL_TIMEOUT_MS, fetchCount: 0 },
})
