import { and, inArray, type SQL } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { members, workspaces } from '../accounts/memberships/tables'
import { boundWorkspaceCondition, type WorkspaceRow } from '../accounts/memberships/workspace-access'
import { badRequest } from '../core/problem'
import { loadRe2 } from '../core/re2'
import { parseOptional } from '../core/shapes'
import { normalizeForLookup } from '../core/text-normalization'
import { Busy } from '../storage/errors'
import { applyPage, parseNames, parsePage, parseSelect, readFilteredPage, toListPage } from '../storage/pagination'
import { costlyWork } from '../tenancy/fair-queue'
import { findInvites, findMembers } from './serializers'
import type { WorkspacesQuery } from './shapes'
import { sortable } from './workspaces'

const MAX_PATTERN_LENGTH = 100 // characters
const MAX_PROGRAM_SIZE = 2_000 // instructions of the compiled pattern, each run at most once per character
const SLICE_MS = 2 // of matching names, before others get their turn

/**
 * Returns a page of all matching workspaces of the tenant, with the selected fields.
 * @throws 400 INVALID_INPUT
 */
export async function searchWorkspaces(ctx: Ctx, query: WorkspacesQuery, request: Request) {
  const page = parsePage(query, sortable)
  const fields = parseSelect(query.select, SELECTABLE_FIELDS) ?? new Set(DEFAULT_FIELDS)
  const [where, rowFilter] = [buildConditions(ctx, query), buildRowFilter(ctx, query, request)]
  const createQuery = () => ctx.db.select().from(workspaces).where(where)
  const { items, ...others } = rowFilter
    ? await readFilteredPage(page, createQuery, rowFilter)
    : await toListPage(page, await applyPage(page, createQuery()), () => ctx.db.$count(workspaces, where))
  return { ...others, items: await selectFields(ctx, items, fields) }
}

/** Returns the filters that the database can evaluate. */
function buildConditions({ db, actor }: Ctx, query: WorkspacesQuery): SQL | undefined {
  const [ids, users] = [parseNames(query._id, '_id'), parseNames(query['members.user'], 'members.user')]
  const ofUsers = users && db.select({ id: members.workspace }).from(members).where(inArray(members.user, users))
  return and(
    ids && inArray(workspaces._id, ids),
    ofUsers && inArray(workspaces._id, ofUsers),
    boundWorkspaceCondition(actor, workspaces._id),
  )
}

type RowFilter = (rows: WorkspaceRow[]) => Promise<WorkspaceRow[]>

/**
 * Returns the filters that are evaluated here: on labels, patterns and text. Returns undefined without any.
 * @throws 400 INVALID_INPUT for an invalid pattern
 */
function buildRowFilter(ctx: Ctx, query: WorkspacesQuery, request: Request): RowFilter | undefined {
  const [labels, matchesPattern, q] = [
    parseNames(query.labels, 'labels'),
    compilePattern(parseOptional(query.name)),
    parseOptional(query.q),
  ]
  if (!labels && !matchesPattern && q === undefined) return
  const searched = normalizeForLookup(q ?? '')
  const containsQuery = (text: string | null) => !!text && normalizeForLookup(text).includes(searched)
  return async (rows) => {
    const labeled = labels ? rows.filter((row) => row.labels.some((label) => labels.includes(label))) : rows
    const candidates = matchesPattern ? await filterInSlices(ctx, labeled, matchesPattern, request) : labeled
    if (q === undefined) return candidates
    const invites = await findInvites(
      ctx.db,
      candidates.filter(({ name }) => !containsQuery(name)).map(({ _id }) => _id),
    )
    return candidates.filter(
      ({ _id, name }) =>
        containsQuery(name) ||
        invites.get(_id)?.some((invite) => containsQuery(invite.email) || containsQuery(invite.name)),
    )
  }
}

/** Filters rows by their names in turns with other costly work: a hostile pattern takes 10 ms for each name. */
async function filterInSlices(
  { tenant, actor }: Ctx,
  rows: WorkspaceRow[],
  matchesPattern: (name: string) => boolean,
  { signal }: Request,
) {
  const matching: WorkspaceRow[] = []
  for (let next = 0; next < rows.length; ) {
    if (signal.aborted) throw new Busy('The client disconnected.')
    await costlyWork.run({ tenant, caller: actor.user }, async () => {
      for (const end = performance.now() + SLICE_MS; next < rows.length && performance.now() < end; next++)
        if (matchesPattern(rows[next]!.name)) matching.push(rows[next]!)
    })
  }
  return matching
}

const SELECTABLE_FIELDS = ['_id', 'name', 'logo', 'labels', 'tenant', 'members', 'invites', 'created', 'updated']
const DEFAULT_FIELDS = ['name', 'logo', 'tenant', 'labels']
async function selectFields({ db, tenant }: Ctx, rows: WorkspaceRow[], fields: Set<string>) {
  const ids = rows.map(({ _id }) => _id)
  const [members, invites] = await Promise.all([
    fields.has('members') ? findMembers(db, ids, true) : undefined,
    fields.has('invites') ? findInvites(db, ids) : undefined,
  ])
  return rows.map((row) => {
    const { _id, ...workspace } = {
      ...row,
      tenant,
      members: members?.get(row._id) ?? [],
      invites: invites?.get(row._id) ?? [],
    }
    return { _id, ...Object.fromEntries(Object.entries(workspace).filter(([key]) => fields.has(key))) }
  })
}

function compilePattern(text: string | undefined): ((name: string) => boolean) | undefined {
  if (text === undefined) return
  const reject = (message: string) => badRequest({ path: 'name', message })
  if (text.length > MAX_PATTERN_LENGTH) return reject(`The pattern must have at most ${MAX_PATTERN_LENGTH} characters.`)
  try {
    const engine = loadRe2()
    const compiled = engine.compile(text, engine.CASE_INSENSITIVE)
    if (compiled.programSize() <= MAX_PROGRAM_SIZE) return (name) => compiled.matcher(name).find()
  } catch (error) {
    return reject(`Invalid pattern: ${(error as Error).message}`)
  }
  return reject('The pattern is too complex. Use fewer or smaller repetitions.')
}
