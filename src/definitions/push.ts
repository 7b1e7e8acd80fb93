import type { Ctx } from '../accounts/context'
import { scopesAllow } from '../accounts/permissions'
import { isRejection, notFound, Problem } from '../core/problem'
import { type DefinitionFiles, parseFiles, toResourcePath } from './definition-files'
import { kinds } from './kinds'
import type { EntityImpact, KindName, PlannedResource, StoredResource } from './kinds/definition-kind'
import { changedProblem, type Plan, type PlannedChange, type PlanOptions, planChanges } from './plan'
import { readResources, toLabeled, toVersion, type Versions } from './tenant-definitions'

const TURN_MS = 10_000 // after which a push answers, and the caller goes on with the rest

export type DiffInput = PlanOptions & { files: DefinitionFiles }
export type PushInput = DiffInput & { pruneData?: boolean }

/** A change as callers see it. `entities` are those of a blueprint. */
export type ChangeReport = {
  action: PlannedChange['action']
  kind: KindName
  name: string
  details?: string[]
  entities?: number
}

/**
 * Returns what a push of these files would change, and which secrets it would need and keep. Nothing is changed. Values of
 * secrets are compared only for callers who may push.
 * @throws 400 INVALID_INPUT for a file, 412 when a resource has changed since it was pulled
 */
export async function diff(ctx: Ctx, { secrets, ...input }: DiffInput) {
  const mayPush = scopesAllow(ctx.actor.scopes, 'definitions', 'write')
  const plan = await planPush(ctx, { ...input, secrets: mayPush ? secrets : {} })
  const reports = []
  for (const change of plan.changes) reports.push(toReport(change, await assessImpact(ctx, change)))
  const { missingSecrets, keptSecrets } = plan
  return { changes: reports, missingSecrets, keptSecrets }
}

/**
 * Makes the changes of the files one after the other, for ten seconds at most: `remaining` says how many are left for
 * another call with the same files. `versions` are those of the resources that are now as the files say, and null for
 * resources that are gone.
 * @throws 400 MISSING_SECRETS, and what `diff` and any change that can be judged beforehand throw, before anything is
 * changed; else what the first change that fails throws: its details have the changes that are made
 */
export async function push(ctx: Ctx, input: PushInput) {
  const plan = await planPush(ctx, input)
  if (plan.missingSecrets.length) throw missingSecretsProblem(plan.missingSecrets)
  const ids = new Map(plan.resources.map(({ kind, label, id }) => [`${kind} ${label}`, id]))
  const versions: Record<string, string | null> = listKnownVersions(plan)
  const changes: ChangeReport[] = []
  const planned = listPlanned(plan)
  const remaining = new Map(planned.map((resource) => [toResourcePath(resource), resource]))
  for (const change of plan.changes) {
    try {
      if (!change.definition) remaining.delete(toResourcePath(change))
      await validateChange(ctx, change, planned, { pruneData: !!input.pruneData, remaining: [...remaining.values()] })
    } catch (error) {
      throw explainPartialPush(error, change, plan, { changes, versions })
    }
  }
  const until = performance.now() + TURN_MS
  for (const change of plan.changes) {
    if (changes.length && performance.now() > until) break
    try {
      const impact = await assessImpact(ctx, change)
      const version = await applyChange(ctx, change, ids, !!input.pruneData)
      versions[toResourcePath(change)] = version
      changes.push(toReport(change, impact))
    } catch (error) {
      throw explainPartialPush(error, change, plan, { changes, versions })
    }
  }
  return { changes, versions, remaining: plan.changes.length - changes.length }
}

async function planPush(ctx: Ctx, { files, ...options }: DiffInput): Promise<Plan> {
  const parsed = parseFiles(files)
  return planChanges(parsed, await readResources(ctx, parsed), options)
}

function missingSecretsProblem(names: string[]) {
  const message = `Set these variables, or pass them by --env-file: ${names.join(', ')}. Nothing has been changed.`
  return new Problem(400, 'MISSING_SECRETS', message, {
    details: names.map((path) => ({ path, message: `${path} has no value.` })),
  })
}

/** Returns the versions of the resources that are as the files say already. */
function listKnownVersions({ resources, changes }: Plan): Versions {
  const changing = new Set(changes.map(({ before }) => before))
  return Object.fromEntries(resources.filter((resource) => resource.file && !changing.has(resource)).map(toVersion))
}

/** Returns all resources as they will be, and those that will be removed last. */
function listPlanned({ resources, changes }: Plan): PlannedResource[] {
  const toEntry = (resource: PlannedResource) => [toResourcePath(resource), resource] as const
  const changed = changes.flatMap(({ definition, ...change }) =>
    definition ? [toEntry({ ...change, definition })] : [],
  )
  return [...new Map([...resources.map(toEntry), ...changed]).values()]
}

/** Judges a change before any other is made. @throws what the change would */
async function validateChange(ctx: Ctx, change: PlannedChange, planned: PlannedResource[], removal: RemovalOptions) {
  const { kind, name, definition, before } = change
  const { nameKey, validate, validateRemoval } = kinds[kind]
  if (definition) await validate(ctx, { ...definition, [nameKey]: name }, { before, planned })
  else await validateRemoval?.(ctx, before!.id, removal)
}

/** Returns the new version, or null for a resource that is removed or still being changed. */
async function applyChange(ctx: Ctx, change: PlannedChange, ids: Map<string, string>, pruneData: boolean) {
  const { kind: kindName, label, name, definition, before } = change
  const kind = kinds[kindName]
  const key = `${kindName} ${label}`
  const id = ids.get(key)
  if (!definition) {
    await kind.remove(ctx, before!.id, { pruneData, ifMatch: await readUnchanged(ctx, change) })
    ids.delete(key)
    return null
  }
  const toId = (target: KindName, reference: string) => ids.get(`${target} ${reference}`) ?? reference
  const input = { ...(kind.mapReferences?.(definition, toId) ?? definition), [kind.nameKey]: name }
  if (id === undefined) {
    const created = (await kind.create(ctx, input)) ?? notFound(kindName)
    ids.set(key, created.id)
    return readVersion(created, change, ids)
  }
  const ifMatch = await readUnchanged(ctx, change)
  if (await kind.change(ctx, id, input, { before: before?.stored ?? {}, ifMatch })) return null
  const { value } = await kind.read(ctx, id)
  return readVersion(value ?? notFound(kindName), change, ids)
}

/** Returns the version of what is stored now, which may differ from what was sent, such as in the case of a currency. */
function readVersion(stored: StoredResource, { kind, label, name }: PlannedChange, ids: Map<string, string>) {
  const labels = new Map(
    [...ids].map(([key, id]) => [`${key.split(' ', 1)[0]} ${id}`, key.slice(key.indexOf(' ') + 1)]),
  )
  const [, version] = toVersion({ kind, label, name, definition: toLabeled(kind, stored.definition, labels) })
  return version
}

/** Returns the version of a resource that nobody has changed since the push began. @throws 412 */
async function readUnchanged(ctx: Ctx, change: PlannedChange): Promise<string | undefined> {
  if (!change.before) return
  const { value, version } = await kinds[change.kind].read(ctx, change.before.id)
  if (!value || !Bun.deepEquals(value.definition, change.before.stored)) throw changedProblem(change, change.before)
  return version
}

async function assessImpact(ctx: Ctx, { kind, before, definition }: PlannedChange): Promise<EntityImpact | undefined> {
  if (!before) return
  return kinds[kind].assessImpact?.(ctx, before.id, definition)
}

function toReport({ action, kind, label, details }: PlannedChange, impact?: EntityImpact): ChangeReport {
  const all = [...details, ...(impact?.details ?? [])]
  return {
    ...{ action, kind, name: label },
    ...(all.length && { details: all }),
    ...(impact && { entities: impact.entities }),
  }
}

type RemovalOptions = { pruneData: boolean; remaining: PlannedResource[] }
type Done = { changes: ChangeReport[]; versions: Record<string, string | null> }

/** Returns the error with the changes that are made before it. */
function explainPartialPush(error: unknown, { kind, label }: PlannedChange, plan: Plan, done: Done) {
  if (!(error instanceof Problem)) return error
  const next = isRejection(error) ? 'Correct this one and push again' : 'Push again'
  const progress = `${done.changes.length} of ${plan.changes.length} changes are made. ${next} to make the others.`
  const errors = error.more.details
  return new Problem(error.status, error.code, `The ${kind} "${label}": ${error.message} ${progress}`, {
    ...{ cause: error, headers: error.more.headers },
    details: { ...done, ...(errors !== undefined && { errors }) },
  })
}
