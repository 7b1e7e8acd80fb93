import { and, eq, inArray, type SQL } from 'drizzle-orm'
import type { Answer } from '../../core/etag'
import { invalid } from '../../core/problem'
import { isOn } from '../../core/shapes'
import { answerPage, type Page, pageOf } from '../../storage/lists'
import type { Db } from '../../storage/port'
import type { Ctx } from '../guard'
import { User } from '../shapes'
import { type UserRow, users } from '../tables'
import { fullNameOf, keyOfName, shown } from '../users'
import type { UsersQuery } from './shapes'

const NAMES = 1_000 // of ids and roles in a query
const SLICE = 500 // users that are looked at together

const sortable = {
  _id: users._id,
  username: users.usernameKey,
  email: users.emailKey,
  created: users.created,
  updated: users.updated,
}

/** A page of the users of the tenant, newest first. @throws 400 */
export async function all(ctx: Ctx, query: UsersQuery, answer: Answer) {
  const [page, fields] = [pageOf(query, sortable), selected(query.select)]
  const [where, fits] = [conditions(query), judge(query)]
  const { rows, total } = fits
    ? await walked(ctx.db, where, fits, page)
    : { rows: await read(ctx.db, where, page, page.limit + 1, page.offset), total: undefined }
  const told = await answerPage(answer, page, rows, async () => total ?? ctx.db.$count(users, where))
  return told.map((row) => picked(shown(row, true), fields))
}

/** What the database can tell. */
function conditions(query: UsersQuery): SQL | undefined {
  const [ids, username] = [names(query, '_id'), given(query.username)]
  return and(
    ids && inArray(users._id, ids),
    username !== undefined && isOn(query.exact) ? eq(users.usernameKey, keyOfName(username)) : undefined,
  )
}

type Judge = (user: UserRow) => boolean

/** What only we can tell, because it is about letters, or about what is in a list. */
function judge(query: UsersQuery): Judge | undefined {
  const [roles, username, q] = [names(query, 'roles'), given(query.username), given(query.q)]
  const part = username !== undefined && !isOn(query.exact) ? keyOfName(username) : undefined
  if (!roles && part === undefined && q === undefined) return
  const searched = keyOfName(q ?? '')
  const has = (text: string | null) => !!text && keyOfName(text).includes(searched)
  return (user) =>
    (!roles || user.roles.some((role) => roles.includes(role))) &&
    (part === undefined || user.usernameKey.includes(part)) &&
    (q === undefined || [user.usernameKey, user.emailKey, user.name, fullNameOf(user), user.phone].some(has))
}

/** Goes through all of them in their order, slice by slice; to the end only where they are to be counted. */
async function walked(db: Db, where: SQL | undefined, fits: Judge, page: Page) {
  const rows: UserRow[] = []
  let total = 0
  for (let at = 0; ; at += SLICE) {
    const slice = await read(db, where, page, SLICE, at)
    for (const row of slice) if (fits(row) && total++ >= page.offset && rows.length <= page.limit) rows.push(row)
    if (slice.length < SLICE || (rows.length > page.limit && !page.count)) return { rows, total }
  }
}

const read = (db: Db, where: SQL | undefined, { order }: Page, limit: number, offset: number) =>
  db
    .select()
    .from(users)
    .where(where)
    .orderBy(...order)
    .limit(limit)
    .offset(offset)

const FIELDS = Object.keys(User.properties)

function selected(select: string | undefined): Set<string> | undefined {
  const keys = given(select)
    ?.split(/[\s,]+/)
    .filter(Boolean)
  const unknown = keys?.find((key) => !FIELDS.includes(key))
  if (unknown !== undefined)
    invalid({ path: 'select', message: `A user has no field "${unknown}". Choose among ${FIELDS.join(', ')}.` })
  return keys && new Set(keys)
}

const picked = ({ _id, ...user }: ReturnType<typeof shown>, fields: Set<string> | undefined) => ({
  _id,
  ...(fields ? Object.fromEntries(Object.entries(user).filter(([key]) => fields.has(key))) : user),
})

/** Clients send what they lack as nothing, or as this word. */
const given = (value: string | undefined) => (value && value !== 'undefined' ? value : undefined)

function names(query: UsersQuery, key: '_id' | 'roles'): string[] | undefined {
  const found = given(query[key])
    ?.split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  if (found && found.length > NAMES) invalid({ path: key, message: `Name at most ${NAMES}.` })
  return found
}
