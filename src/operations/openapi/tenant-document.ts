import { asc, eq } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../../accounts/context'
import { authorizeCostlyRead } from '../../accounts/guard'
import { fieldTypes } from '../../blueprints/fields'
import { appliesTo, mayReadField, mayWriteField } from '../../blueprints/permissions'
import { toSample } from '../../blueprints/sample-entity'
import type { Definition, Field, Operation } from '../../blueprints/shapes'
import { blueprints } from '../../blueprints/tables'
import { assignIdentifiers } from '../../blueprints/typegen/identifiers'
import { Problem } from '../../core/problem'
import { weakCached } from '../../core/weak-cache'
import { EntityVersion, versionParameters } from '../../entities/history/shapes'
import { asOfParameter, countParameter, jsonContent, toParameter } from '../../entities/parameters'
import { readFairly } from '../../entities/query/fair-reads'
import { EntityDeleted } from '../../entities/shapes'
import { linkOriginalRequest } from '../../tenancy/client-connection'
import { Components } from './components'
import { buildOpenApi, type Document } from './document'
import { jsonWithExample, toEntityExamples } from './entity-examples'
import { toFieldSchema } from './field-schemas'
import type { Route } from './operation'
import { foldName, toItemName, toTypeName, withDistinctGoNames } from './part-names'
import { isSchema, type Schema } from './schema'

/**
 * Returns the OpenAPI document, as JSON in UTF-8, with the blueprints of a tenant: a schema and paths for each, with the
 * operations and fields that the caller may use.
 * @throws 401 UNAUTHENTICATED for guests, 503 BUSY, and the errors of `authorizeCostlyRead`
 */
export async function buildTenantOpenApi(
  base: Document,
  request: Request,
  id: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const ctx = await authenticateFor(request, id)
  return readFairly(ctx, request, async (db) => {
    const rows = await db.select({ key: blueprints.key }).from(blueprints).orderBy(asc(blueprints.key))
    const keys = rows.map(({ key }) => key)
    const names = assignIdentifiers(keys, Object.keys(base.components.schemas).join(' '))
    const taken = new Set([...names.values()].flatMap((one) => Object.values(one)))
    const isTaken = (name: string) => name in base.components.schemas || taken.has(name)
    const paths: Buffer[] = []
    const schemas: Buffer[] = []
    for (const key of keys) {
      await db.yieldToOthers()
      const row = await db.select().from(blueprints).where(eq(blueprints.key, key)).get()
      const parts = new Components(isTaken)
      const described = row && describeBlueprint(ctx, row, names.get(key)?.entity ?? key, parts)
      for (const name of Object.keys(parts.schemas)) taken.add(name)
      if (!described?.routes.length) continue
      paths.push(toFurtherMembers(buildOpenApi(described.routes).paths))
      schemas.push(toFurtherMembers(described.schemas))
    }
    const { beforePaths, beforeSchemas } = splitDocument(base)
    return Buffer.concat([beforePaths, ...paths, beforeSchemas, ...schemas, Buffer.from('}}}')])
  })
}

/** Returns the members of an object, to be appended to those of another. */
const toFurtherMembers = (object: object) => Buffer.from(`,${JSON.stringify(object).slice(1, -1)}`)

/** Returns the JSON of a document with its paths and schemas last, split where each can be extended. */
const splitDocument = weakCached(({ paths, components: { schemas, ...components }, ...rest }: Document) => ({
  beforePaths: Buffer.from(`${JSON.stringify({ ...rest, paths }).slice(0, -2)}`),
  beforeSchemas: Buffer.from(`},"components":${JSON.stringify({ ...components, schemas }).slice(0, -2)}`),
}))

/** Authenticates the caller for the tenant that the URL names. */
async function authenticateFor(request: Request, id: string): Promise<Ctx> {
  const headers = new Headers(request.headers)
  headers.set('tenant', id)
  const tenantRequest = new Request(request.url, { headers })
  linkOriginalRequest(tenantRequest, request)
  const ctx = await authorizeCostlyRead(tenantRequest, 'blueprints')
  if (isSignedIn(ctx)) return ctx
  throw new Problem(401, 'UNAUTHENTICATED', 'Sign in to see the description of a tenant’s blueprints.')
}

const isSignedIn = (ctx: PublicCtx): ctx is Ctx => ctx.actor !== undefined

/** A field with the schema of its values, in which objects, unions and choices have names. */
type DescribedField = Field & { described: Schema }

function describeField(field: Field, entity: string, components: Components): Schema {
  const name = `${entity}${toTypeName(field.key)}`
  const { title, description, default: value, ...schema } = components.nameParts(toFieldSchema(field), name)
  const annotations = { ...(title ? { title } : {}), ...(description ? { description } : {}) }
  const { items } = schema
  return {
    ...annotations,
    ...(hasChoices(schema) ? components.define(schema, name) : schema),
    ...(hasChoices(items) && { items: components.define(items, toItemName(name)) }),
    ...(value !== undefined && { default: value }),
  }
}

/** Choices have a name, because the same ones occur in entities, drafts and changes. */
const hasChoices = (schema: unknown): schema is Schema => isSchema(schema) && Array.isArray(schema.enum)

type BlueprintRow = { key: string; name: string; definition: Definition }

/** Returns the schemas of a blueprint, and the routes of its entities as if they were declared for it alone. */
function describeBlueprint(
  { actor }: Ctx,
  { key, name, definition }: BlueprintRow,
  entity: string,
  components: Components,
) {
  const { fields: own, computed = {}, permissions = [], history } = definition
  const mayWrite = (field: Field) => mayWriteField(field, actor) && !Object.hasOwn(computed, field.key)
  const fields = own
    .filter((field) => mayReadField(field, actor) || mayWrite(field))
    .map((field) => ({ ...field, described: describeField(field, entity, components) }))
  const isAllowed = (operation: Operation) =>
    actor.privileged || permissions.some((rule) => rule.operation === operation && appliesTo(rule, actor))
  const readable = fields.filter((field) => mayReadField(field, actor))
  const writable = fields.filter(mayWrite)
  const ref = (schema: string) => ({ $ref: `#/components/schemas/${schema}` })
  const schemas = {
    [entity]: entitySchema(name, readable, ref(`${entity}Properties`)),
    [`${entity}Properties`]: objectSchema(readable, ({ required }) => !!required),
    [`New${entity}`]: inputSchema(writable, ({ required, default: value }) => !!required && (value ?? null) === null),
    [`${entity}Change`]: inputSchema(writable, () => false),
  }
  const detail = (operationId: string, summary: string, access = 'anyone') => ({
    ...{ 'x-access': access, operationId, summary, tags: ['entities'] },
  })
  const examples = toEntityExamples(writable, readable)
  const entityResponse = { 200: jsonWithExample(ref(entity), 'The entity', examples.entity) }
  const changeResponses = { ...entityResponse, 409: jsonContent({}, ''), 412: jsonContent({}, '') }
  const [listPath, entityPath] = [`/api/blueprints/${key}/entities`, `/api/blueprints/${key}/entities/:identifier`]
  const change = {
    requestBody: toRequestBody(ref(`${entity}Change`), 'The properties to change', writable, examples.change),
    responses: changeResponses,
  }
  const routes: [Operation, Route][] = [
    [
      'read',
      toRoute('GET', listPath, {
        ...detail(`list${entity}Entities`, `List entities of ${name}`),
        ...listOperation(readable, ref(entity), !!history, examples.entity),
      }),
    ],
    [
      'read',
      toRoute('GET', entityPath, {
        ...detail(`get${entity}Entity`, `Get an entity of ${name}`),
        responses: entityResponse,
      }),
    ],
    [
      'create',
      toRoute('POST', listPath, {
        ...detail(`create${entity}Entity`, `Create an entity of ${name}`),
        requestBody: toRequestBody(ref(`New${entity}`), 'The properties', writable, examples.input),
        responses: { 201: jsonWithExample(ref(entity), 'The new entity', examples.entity) },
      }),
    ],
    [
      'update',
      toRoute('PUT', entityPath, { ...detail(`update${entity}Entity`, `Update an entity of ${name}`), ...change }),
    ],
    [
      'update',
      toRoute('PATCH', entityPath, { ...detail(`patch${entity}Entity`, `Update an entity of ${name}`), ...change }),
    ],
    [
      'delete',
      toRoute('DELETE', entityPath, {
        ...detail(`delete${entity}Entity`, `Delete an entity of ${name}`),
        responses: {
          200: jsonContent(EntityDeleted, 'The entity was deleted.'),
          409: jsonContent({}, ''),
          412: jsonContent({}, ''),
        },
      }),
    ],
  ]
  if (history) {
    const versions = jsonContent({ type: 'array', items: EntityVersion }, 'The versions')
    const restored = {
      ...changeResponses,
      201: jsonWithExample(ref(entity), 'The entity, created again', examples.entity),
    }
    routes.push(
      [
        'read',
        toRoute('GET', `${entityPath}/history`, {
          ...detail(`list${entity}Versions`, `List the versions of an entity of ${name}`),
          parameters: versionParameters.map(toParameter),
          responses: { 200: versions },
        }),
      ],
      [
        'update',
        toRoute('POST', `${entityPath}/history/:version/restore`, {
          ...detail(`restore${entity}Version`, `Restore a version of an entity of ${name}`),
          responses: restored,
        }),
      ],
    )
  }
  return {
    schemas: { ...schemas, ...components.schemas },
    routes: routes.flatMap(([operation, route]) => (isAllowed(operation) ? [route] : [])),
  }
}

/** Returns the body of a write: JSON, and for a blueprint with file fields a multipart form, too. */
function toRequestBody(schema: Schema, description: string, fields: DescribedField[], example: unknown) {
  const json = jsonWithExample(schema, description, example)
  if (!fields.some(({ type }) => type === 'file')) return json
  const parts = fields.map((field) => [field.key, toPartSchema(field)])
  const form = { type: 'object', properties: { ...Object.fromEntries(parts), keep: { type: 'boolean' } } }
  return { ...json, content: { ...json.content, 'multipart/form-data': { schema: form } } }
}

function toPartSchema(field: DescribedField): Schema {
  const { default: _, ...schema } = field.described
  if (field.type !== 'file') return schema
  const part = { type: 'string', format: 'binary' }
  return field.multi ? { type: 'array', items: part } : part
}

const toRoute = (method: string, path: string, detail: Route['hooks']['detail']): Route => ({
  method,
  path,
  hooks: { detail },
})

function listOperation(fields: DescribedField[], entity: Schema, hasHistory: boolean, example: unknown) {
  const simple = fields.filter(({ type, multi }) => fieldTypes[type].toIndexKey && !multi)
  const options = listOptions(simple, hasHistory)
  const namesInUse = new Set(options.map(({ name }) => foldName(name)))
  // A filter whose name would be another parameter's in generated code is only in the words.
  const filters = simple.filter(({ key }) => !namesInUse.has(foldName(key)) && namesInUse.add(foldName(key)))
  return {
    description:
      'Filters: `field=value`, or `field[$gt]=value` with `$lt`, `$gt`, `$lte`, `$gte`, `$ne`, `$in`, `$nin`, `$exists` or `$like`.',
    parameters: [
      ...filters.map((field) => {
        const { default: _, description, title, ...schema } = field.described
        return {
          name: field.key,
          in: 'query',
          required: false,
          description: `${title ?? `only this \`${field.key}\``}`,
          schema,
          example: toSample(field),
        }
      }),
      ...options,
    ],
    responses: { 200: jsonWithExample({ type: 'array', items: entity }, 'A page of entities', example && [example]) },
  }
}

function listOptions(simple: Field[], hasHistory: boolean) {
  const sortable = simple.map(({ key }) => key).join('|')
  const sort = `^[+-]?(${sortable}|_id|identifier|created|updated)(,[+-]?(${sortable}|_id|identifier|created|updated))*$`
  return [
    toParameter([
      '$limit',
      'integer',
      'maximum number of entities to return; at most 1000',
      { minimum: 0, default: 100 },
    ]),
    toParameter(['$page', 'integer', 'page number, starting at 1', { minimum: 0, default: 1 }]),
    toParameter(['$sort', 'string', 'fields to sort by; "-" before one for descending', { pattern: sort }]),
    toParameter(countParameter),
    toParameter(['$q', 'string', 'words that the entity must contain']),
    ...(hasHistory ? [toParameter(asOfParameter)] : []),
    toParameter(['$after', 'string', 'the cursor of the `Link` to the next page']),
  ]
}

const SYSTEM_FIELDS = { _id: 'string', identifier: 'string', created: 'date-time', updated: 'date-time' }

const entitySchema = (title: string, fields: DescribedField[], properties: Schema): Schema => {
  const { required, properties: own } = objectSchema(fields, (field) => !!field.required)
  return {
    ...{ description: title, type: 'object' },
    required: [...Object.keys(SYSTEM_FIELDS), 'user', 'workspace', 'metadata', ...(required as string[])],
    properties: {
      ...Object.fromEntries(
        Object.entries(SYSTEM_FIELDS).map(([key, format]) => [
          key,
          { type: 'string', ...(format !== 'string' && { format }) },
        ]),
      ),
      user: { type: ['string', 'null'] },
      workspace: { type: ['string', 'null'] },
      metadata: properties,
      ...(own as Schema),
    },
  }
}

const objectSchema = (fields: DescribedField[], isRequired: (field: DescribedField) => boolean): Schema => ({
  type: 'object',
  required: fields.filter(isRequired).map(({ key }) => key),
  properties: withDistinctGoNames(Object.fromEntries(fields.map((field) => [field.key, field.described]))),
})

/** Returns the schema of an input, in which fields that are not required may be null, which removes them. */
function inputSchema(fields: DescribedField[], isRequired: (field: DescribedField) => boolean): Schema {
  const { properties, ...rest } = objectSchema(fields, isRequired)
  const own = Object.fromEntries(
    fields.map((field) => {
      const schema = (properties as Record<string, Schema>)[field.key] ?? {}
      return [field.key, field.required ? schema : toNullable(schema)]
    }),
  )
  const identifier = { type: ['string', 'null'], description: 'generated by the server if omitted' }
  return { ...rest, properties: { identifier, ...own } }
}

function toNullable({ type, $ref, ...schema }: Schema): Schema {
  if ($ref !== undefined) return { anyOf: [{ $ref }, { type: 'null' }], ...schema }
  return { ...schema, ...(type !== undefined && { type: [...[type].flat(), 'null'] }) }
}
