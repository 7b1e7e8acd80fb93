import { and, inArray, type SQL } from 'drizzle-orm'
import type { Answer } from '../../core/etag'
import { invalid } from '../../core/problem'
import { re2 } from '../../core/re2'
import { given } from '../../core/shapes'
import { answerPage, judgedPage, namesOf, type Page, pageOf, selectedOf } from '../../storage/lists'
import type { Db } from '../../storage/port'
import type { Ctx } from '../guard'
import { keyOfName } from '../users'
import { type WorkspaceRow, within } from './reach'
import type { AllQuery } from './shapes'
import { invitesOf, membersOf } from './shown'
import { members, workspaces } from './tables'
import { sortable } from './workspaces'

const PATTERN = 100 // characters
const PROGRAM = 2_000 // steps of the compiled pattern; a name takes as many for each of its characters at most

/** A page of all workspaces of the tenant, as they are asked for. @throws 400 */
export async function all(ctx: Ctx, query: AllQuery, answer: Answer) {
  const page = pageOf(query, sortable)
  const fields = selectedOf(query.select, FIELDS) ?? new Set(USUAL)
  const [where, fits] = [conditions(ctx, query), judge(ctx.db, query)]
  const read = (limit: number, offset: number) => found(ctx.db, where, page, limit, offset)
  const { rows, total } = fits
    ? await judgedPage(page, read, fits)
    : { rows: await read(page.limit + 1, page.offset), total: undefined }
  const told = await answerPage(answer, page, rows, async () => total ?? ctx.db.$count(workspaces, where))
  return picked(ctx, told, fields)
}

/** What the database can tell. */
function conditions({ db, actor }: Ctx, query: AllQuery): SQL | undefined {
  const [ids, users] = [namesOf(query._id, '_id'), namesOf(query['members.user'], 'members.user')]
  const theirs = users && db.select({ id: members.workspace }).from(members).where(inArray(members.user, users))
  return and(
    ids && inArray(workspaces._id, ids),
    theirs && inArray(workspaces._id, theirs),
    within(actor, workspaces._id),
  )
}

type Judge = (rows: WorkspaceRow[]) => Promise<WorkspaceRow[]>

/** What only we can tell, because it is about letters, or about what is in a list. */
function judge(db: Db, query: AllQuery): Judge | undefined {
  const [labels, matches, q] = [namesOf(query.labels, 'labels'), pattern(given(query.name)), given(query.q)]
  if (!labels && !matches && q === undefined) return
  const searched = keyOfName(q ?? '')
  const has = (text: string | null) => !!text && keyOfName(text).includes(searched)
  return async (rows) => {
    const some = rows.filter(
      ({ name, labels: own }) => (!labels || own.some((one) => labels.includes(one))) && (!matches || matches(name)),
    )
    if (q === undefined) return some
    const invites = await invitesOf(
      db,
      some.filter(({ name }) => !has(name)).map(({ _id }) => _id),
    )
    return some.filter(
      ({ _id, name }) => has(name) || invites.get(_id)?.some((invite) => has(invite.email) || has(invite.name)),
    )
  }
}

const found = (db: Db, where: SQL | undefined, { order }: Page, limit: number, offset: number) =>
  db
    .select()
    .from(workspaces)
    .where(where)
    .orderBy(...order)
    .limit(limit)
    .offset(offset)

const FIELDS = ['_id', 'name', 'logo', 'labels', 'tenant', 'members', 'invites', 'created', 'updated']
const USUAL = ['name', 'logo', 'tenant', 'labels']
async function picked({ db, tenant }: Ctx, rows: WorkspaceRow[], fields: Set<string>) {
  const ids = rows.map(({ _id }) => _id)
  const [members, invites] = await Promise.all([
    fields.has('members') ? membersOf(db, ids, true) : undefined,
    fields.has('invites') ? invitesOf(db, ids) : undefined,
  ])
  return rows.map((row) => {
    const { _id, ...whole } = {
      ...row,
      tenant,
      members: members?.get(row._id) ?? [],
      invites: invites?.get(row._id) ?? [],
    }
    return { _id, ...Object.fromEntries(Object.entries(whole).filter(([key]) => fields.has(key))) }
  })
}

function pattern(text: string | undefined): ((name: string) => boolean) | undefined {
  if (text === undefined) return
  const refuse = (message: string) => invalid({ path: 'name', message })
  if (text.length > PATTERN) return refuse(`A pattern has at most ${PATTERN} characters.`)
  try {
    const engine = re2()
    const compiled = engine.compile(text, engine.CASE_INSENSITIVE)
    if (compiled.programSize() <= PROGRAM) return (name) => compiled.matcher(name).find()
  } catch (error) {
    return refuse(`This is no pattern: ${(error as Error).message}`)
  }
  return refuse('This pattern is too large. Repeat fewer things, or less often.')
}
