import { and, inArray, type SQL } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { members, workspaces } from '../accounts/memberships/tables'
import { boundWorkspaceCondition, type WorkspaceRow } from '../accounts/memberships/workspace-access'
import type { HttpContext } from '../core/etag'
import { badRequest } from '../core/problem'
import { loadRe2 } from '../core/re2'
import { parseOptional } from '../core/shapes'
import { normalizeForLookup } from '../core/text-normalization'
import {
  applyPage,
  parseNames,
  parsePage,
  parseSelect,
  respondWithFilteredPage,
  respondWithPage,
} from '../storage/pagination'
import type { Db } from '../storage/port'
import { findInvites, findMembers } from './serializers'
import type { WorkspacesQuery } from './shapes'
import { sortable } from './workspaces'

const MAX_PATTERN_LENGTH = 100 // characters
const MAX_PROGRAM_SIZE = 2_000 // steps of the compiled pattern; a name takes as many for each of its characters at most

/** A page of all workspaces of the tenant, as they are asked for. @throws 400 */
export async function searchWorkspaces(ctx: Ctx, query: WorkspacesQuery, answer: HttpContext) {
  const page = parsePage(query, sortable)
  const fields = parseSelect(query.select, SELECTABLE_FIELDS) ?? new Set(DEFAULT_FIELDS)
  const [where, rowFilter] = [buildConditions(ctx, query), buildRowFilter(ctx.db, query)]
  const createQuery = () => ctx.db.select().from(workspaces).where(where)
  const rows = rowFilter
    ? await respondWithFilteredPage(answer, page, createQuery, rowFilter)
    : await respondWithPage(answer, page, await applyPage(page, createQuery()), () => ctx.db.$count(workspaces, where))
  return selectFields(ctx, rows, fields)
}

/** What the database can tell. */
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

/** What only we can tell, because it is about letters, or about what is in a list. */
function buildRowFilter(db: Db, query: WorkspacesQuery): RowFilter | undefined {
  const [labels, matches, q] = [
    parseNames(query.labels, 'labels'),
    compilePattern(parseOptional(query.name)),
    parseOptional(query.q),
  ]
  if (!labels && !matches && q === undefined) return
  const searched = normalizeForLookup(q ?? '')
  const containsQuery = (text: string | null) => !!text && normalizeForLookup(text).includes(searched)
  return async (rows) => {
    const candidates = rows.filter(
      ({ name, labels: own }) => (!labels || own.some((one) => labels.includes(one))) && (!matches || matches(name)),
    )
    if (q === undefined) return candidates
    const invites = await findInvites(
      db,
      candidates.filter(({ name }) => !containsQuery(name)).map(({ _id }) => _id),
    )
    return candidates.filter(
      ({ _id, name }) =>
        containsQuery(name) ||
        invites.get(_id)?.some((invite) => containsQuery(invite.email) || containsQuery(invite.name)),
    )
  }
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
