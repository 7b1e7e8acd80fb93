import type { PublicCtx } from '../accounts/context'
import type { ParameterNames } from './charts/chart-query'
import { count, readGroups } from './charts/charts'
import { get } from './entities'
import { list } from './list'
import { readWordsHere } from './search/word-reads'
import { exportAll } from './transfer/export'

type EntityRead = (ctx: PublicCtx, request: Request, args: string[]) => Promise<Response>

/** The reads that a thread answers as the main thread would, by their names. Their arguments are texts. */
export const entityReads = {
  list: (ctx, request, [key]) => list(ctx, key!, request),
  get: async (ctx, request, [key, identifier]) => get(ctx, key!, identifier!, request),
  export: (ctx, request, [key]) => exportAll(ctx, key!, request),
  count: async (ctx, request, [key]) => Response.json(await count(ctx, key!, request)),
  groups: async (ctx, request, [key, by, needs]) =>
    Response.json(await readGroups(ctx, key!, request, { by, needs } as ParameterNames)),
  words: async (ctx, _request, args) => Response.json(await readWordsHere(ctx, args)),
} satisfies Record<string, EntityRead>

export type EntityReadName = keyof typeof entityReads
