import { asc, eq } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../../accounts/context'
import { authorizeCostlyRead } from '../../accounts/guard'
import { appliesTo } from '../../blueprints/access-rules'
import { mayReadField, mayWriteField } from '../../blueprints/permissions'
import type { Definition, Field, Operation } from '../../blueprints/shapes'
import { blueprints } from '../../blueprints/tables'
import { assignIdentifiers } from '../../blueprints/typegen/identifiers'
import { Problem } from '../../core/problem'
import { shareNotes } from '../../core/request-log'
import { weakCached } from '../../core/weak-cache'
import { EntityVersion, versionParameters } from '../../entities/history/shapes'
import { jsonContent, toParameter } from '../../entities/parameters'
import { readFairly } from '../../entities/query/fair-reads'
import { EntityDeleted } from '../../entities/shapes'
import { linkOriginalRequest } from '../../tenancy/client-connection'
import { Components } from './components'
import { buildOpenApi, type Document } from './document'
import { jsonWithExample, toEntityExamples } from './entity-examples'
import { type DescribedField, describeField, entitySchema, inputSchema, objectSchema } from './entity-schemas'
import { listOperation } from './list-operation'
import type { Route } from './operation'
import type { Schema } from './schema'

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
  shareNotes(tenantRequest, request)
  const ctx = await authorizeCostlyRead(tenantRequest, 'blueprints')
  if (isSignedIn(ctx)) return ctx
  throw new Problem(401, 'UNAUTHENTICATED', 'Sign in to see the API of a tenant’s blueprints.')
}

const isSignedIn = (ctx: PublicCtx): ctx is Ctx => ctx.actor !== undefined

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
