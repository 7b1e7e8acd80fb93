import type { Ctx } from '../../accounts/guard'
import { refuseUnlessMayRun } from '../../plugins/integrations/permission'
import type { Asked } from '../shapes'
import { clientOf } from '../sources/sources'
import { complete } from '../turn/completion'
import { draftingTool, refuseUnlessMayMake } from './drafting'
import type { Draft } from './drafts'
import type { KindName } from './kinds'
import { type LookupName, lookupTools } from './lookups'

type Builder = { does: string; drafts: KindName[]; looks: LookupName[] }

const builders = {
  all: {
    does: 'the data, the content and the automation of an application: blueprints, blocks and integrations',
    drafts: ['blueprints', 'blocks', 'integrations'],
    looks: ['blueprints', 'blocks', 'integrations', 'sources', 'lambdas'],
  },
  pages: {
    does: 'pages, which consist of blocks: pieces of HTML (`contentType` "html") or of text',
    drafts: ['blocks'],
    looks: ['blocks', 'blueprints'],
  },
  integrations: {
    does: 'integrations: a trigger, such as an event or a time, and a target, such as a lambda, a mail or another server',
    drafts: ['integrations'],
    looks: ['integrations', 'sources', 'lambdas', 'blueprints'],
  },
} satisfies Record<string, Builder>
export type BuilderName = keyof typeof builders

const promptOf = ({ does, drafts }: Builder) => `You help to build an application on a platform. You draft ${does}.
Look at what there is before you draft something that belongs to it. Draft by calling ${drafts.map((name) => `draft_${name}`).join(', ')};
never write drafts into your answer. What is refused you correct and draft again. Where it is not clear what is wanted, ask.
At the end say in few words what you have drafted, in the language of the user.`

/** What a source says by itself, without a prompt of ours. @throws as `complete` does, and 403, 404 */
export async function plain(ctx: Ctx, sourceId: string, asked: Asked, request: Request) {
  await mayAsk(ctx, sourceId)
  return complete(ctx, { _id: null, target: { sourceId, allowSystemMessages: true } }, asked, request)
}

/**
 * Has a source draft things, which are in `drafts` at the end of its answer; with `create` they are made at once, by the
 * rights of the caller. @throws as `complete` does, and 403, 404
 */
export async function build(
  ctx: Ctx,
  sourceId: string,
  name: BuilderName,
  { create, ...asked }: Asked & { create?: boolean | null },
  request: Request,
) {
  await mayAsk(ctx, sourceId)
  const builder: Builder = builders[name]
  if (create) await refuseUnlessMayMake(ctx, builder.drafts)
  const drafts: Draft[] = []
  const drafting = builder.drafts.map((kind) => draftingTool(ctx, kind, drafts, create ? request : undefined))
  const tools = new Map([...lookupTools(ctx, builder.looks), ...drafting].map((tool) => [tool.name, tool]))
  const target = { sourceId, systemPrompt: promptOf(builder) }
  return complete(ctx, { _id: null, target }, asked, request, { toolbox: { tools, drafts } })
}

/** @throws 404 for a source that is not there, 403 for one that is for others */
export async function mayAsk(ctx: Ctx, sourceId: string) {
  const source = await clientOf(ctx, sourceId)
  refuseUnlessMayRun(ctx, { guest: false, roles: source.roles, workspaceRoles: [] })
  return source
}
