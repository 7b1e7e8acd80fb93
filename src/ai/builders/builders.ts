import type { Ctx } from '../../accounts/context'
import { assertMayRun } from '../../integrations/permission'
import type { CompletionRequest } from '../shapes'
import { openSource } from '../sources/sources'
import { complete } from '../turn/completion'
import { assertMayCreateDrafts, buildDraftTool } from './draft-tool'
import type { Draft, DraftKindName } from './kinds/index'
import { buildLookupTools, type LookupName } from './lookups'

type Builder = { subject: string; draftKinds: DraftKindName[]; lookups: LookupName[] }

const builders = {
  all: {
    subject: 'the data, the content and the automation of an application: blueprints, blocks and integrations',
    draftKinds: ['blueprints', 'blocks', 'integrations'],
    lookups: ['blueprints', 'blocks', 'integrations', 'sources', 'lambdas'],
  },
  pages: {
    subject: 'pages, which consist of blocks: pieces of HTML (`contentType` "html") or of text',
    draftKinds: ['blocks'],
    lookups: ['blocks', 'blueprints'],
  },
  integrations: {
    subject:
      'integrations: a trigger, such as an event or a time, and a target, such as a lambda, a mail or another server',
    draftKinds: ['integrations'],
    lookups: ['integrations', 'sources', 'lambdas', 'blueprints'],
  },
} satisfies Record<string, Builder>
export type BuilderName = keyof typeof builders

const buildSystemPrompt = ({
  subject,
  draftKinds,
}: Builder) => `You help to build an application on a platform. You draft ${subject}.
Look at what exists before you draft something that belongs to it. Draft by calling ${draftKinds.map((name) => `draft_${name}`).join(', ')};
never write drafts into your answer. Correct drafts that are refused, and draft them again. Ask if you are not sure what the
user wants. At the end, say in a few words what you have drafted, in the language of the user.`

/** Returns the completion of a source, without any system prompt of ours. @throws what `complete` throws, and 403, 404 */
export async function completeWithSource(
  ctx: Ctx,
  sourceId: string,
  completionRequest: CompletionRequest,
  request: Request,
) {
  await getUsableSource(ctx, sourceId)
  return complete(ctx, { _id: null, target: { sourceId, allowSystemMessages: true } }, completionRequest, request)
}

/**
 * Has a source draft resources, and returns its completion with them in `drafts`. With `create` they are created at once,
 * with the rights of the caller.
 * @throws what `complete` throws, and 403, 404
 */
export async function draftWithBuilder(
  ctx: Ctx,
  sourceId: string,
  name: BuilderName,
  { create, ...completionRequest }: CompletionRequest & { create?: boolean | null },
  request: Request,
) {
  await getUsableSource(ctx, sourceId)
  const builder: Builder = builders[name]
  if (create) await assertMayCreateDrafts(ctx, builder.draftKinds)
  const drafts: Draft[] = []
  const draftTools = builder.draftKinds.map((kind) => buildDraftTool(ctx, kind, drafts, !!create))
  const tools = new Map([...buildLookupTools(ctx, builder.lookups), ...draftTools].map((tool) => [tool.name, tool]))
  const target = { sourceId, systemPrompt: buildSystemPrompt(builder) }
  return complete(ctx, { _id: null, target }, completionRequest, request, { toolbox: { tools, drafts } })
}

/** Returns a source that the caller may call directly. @throws 403 FORBIDDEN, 404 INTEGRATION_SOURCE_NOT_FOUND */
export async function getUsableSource(ctx: Ctx, sourceId: string) {
  const source = await openSource(ctx, sourceId)
  assertMayRun(ctx, { guest: false, roles: source.roles, workspaceRoles: [] })
  return source
}
