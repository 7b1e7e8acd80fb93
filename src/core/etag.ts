import { Problem } from './problem'

/** The part of a route's context that a verb may need to speak HTTP. */
export type Answer = { request: Request; set: { headers: unknown } }

/** Names one state of a thing, also among things that had its name before it; and of the `form` in which it is shown. */
export const etagOf = (version: number, updated: number | string, form = 0) =>
  `"${version}${form ? `.${form}` : ''}-${(typeof updated === 'string' ? Date.parse(updated) : updated).toString(36)}"`

export const giveEtag = ({ set }: Answer, etag: string) => void Object.assign(set.headers as object, { etag })

/** For an answer with a secret in it: nobody on its way may keep it. */
export const forbidKeeping = ({ set }: Answer) =>
  void Object.assign(set.headers as object, { 'cache-control': 'no-store' })

/** Refuses (412) a write that was decided on an older state than this one. */
export function refuseStale({ headers }: Request, etag: string) {
  const wanted = headers.get('if-match')
  if (wanted && !names(wanted, etag))
    throw new Problem(412, 'VERSION_MISMATCH', 'It has been changed since you read it. Read it again, then decide.')
}

/** Whether the caller has this state already. */
export function isKnown({ headers }: Request, etag: string) {
  const known = headers.get('if-none-match')
  return !!known && names(known.replaceAll('W/', ''), etag)
}

const names = (list: string, etag: string) => list.split(',').some((one) => ['*', etag].includes(one.trim()))
