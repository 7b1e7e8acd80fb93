import { and, eq, inArray, type SQL } from 'drizzle-orm'
import { isTrue, parseOptional } from '../../core/shapes'
import { normalizeForLookup } from '../../core/text-normalization'
import {
  applyPage,
  mapItems,
  parseNames,
  parsePage,
  parseSelect,
  readFilteredPage,
  toListPage,
} from '../../storage/pagination'
import type { Ctx } from '../context'
import { User } from '../shapes'
import { type UserRow, users } from '../tables'
import type { UsersQuery } from './shapes'
import { fullNameOf, toUser } from './users'

const sortable = {
  _id: users._id,
  username: users.usernameKey,
  email: users.emailKey,
  created: users.created,
  updated: users.updated,
}

/**
 * Returns a page of the users of the tenant, newest first.
 * @throws 400 INVALID_INPUT
 */
export async function listUsers(ctx: Ctx, query: UsersQuery) {
  const [page, fields] = [parsePage(query, sortable), parseSelect(query.select, SELECTABLE_FIELDS)]
  const [where, rowFilter] = [buildConditions(query), buildRowFilter(query)]
  const createQuery = () => ctx.db.select().from(users).where(where)
  const list = rowFilter
    ? await readFilteredPage(page, createQuery, (candidates) => candidates.filter(rowFilter))
    : await toListPage(page, await applyPage(page, createQuery()), () => ctx.db.$count(users, where))
  return mapItems(list, (row) => selectFields(toUser(row, true), fields))
}

/** Returns the conditions that the database can check. */
function buildConditions(query: UsersQuery): SQL | undefined {
  const [ids, username] = [parseNames(query._id, '_id'), parseOptional(query.username)]
  return and(
    ids && inArray(users._id, ids),
    username !== undefined && isTrue(query.exact) ? eq(users.usernameKey, normalizeForLookup(username)) : undefined,
  )
}

type RowFilter = (user: UserRow) => boolean

/**
 * Returns a filter of what the database cannot check, because it depends on normalized text or on entries of a list.
 */
function buildRowFilter(query: UsersQuery): RowFilter | undefined {
  const [roles, username, q] = [parseNames(query.roles, 'roles'), parseOptional(query.username), parseOptional(query.q)]
  const part = username !== undefined && !isTrue(query.exact) ? normalizeForLookup(username) : undefined
  if (!roles && part === undefined && q === undefined) return
  const searched = normalizeForLookup(q ?? '')
  const containsQuery = (text: string | null) => !!text && normalizeForLookup(text).includes(searched)
  return (user) =>
    (!roles || user.roles.some((role) => roles.includes(role))) &&
    (part === undefined || user.usernameKey.includes(part)) &&
    (q === undefined || [user.usernameKey, user.emailKey, user.name, fullNameOf(user), user.phone].some(containsQuery))
}

const SELECTABLE_FIELDS = Object.keys(User.properties)

const selectFields = ({ _id, ...user }: ReturnType<typeof toUser>, fields: Set<string> | undefined) => ({
  _id,
  ...(fields ? Object.fromEntries(Object.entries(user).filter(([key]) => fields.has(key))) : user),
})
