import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { version } from '../../../package.json'
import type { Ctx } from '../../accounts/context'
import { MAX_AGENT_RUNS } from '../tools/tool'
import { runForModel } from '../tools/tools'
import { loadAllTools } from './mcp-tools'
import { listBlueprintResources, readBlueprintResource } from './resources'

const PAGE_SIZE = 1_000 // tools, or resources
const RESOURCE_NOT_FOUND_CODE = -32_002 // of resources, by the protocol

/**
 * Answers one message of the Model Context Protocol, for the caller of this request and with their rights. Nothing is kept
 * between two messages, so any server may answer any of them, and what was taken from somebody is gone at once.
 */
export async function answerMessage(ctx: Ctx, request: Request, message: unknown): Promise<Response> {
  const server = createServer(ctx, request)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  // What runs for a caller who has gone is told so, and nobody waits for its answer.
  const { promise: callerGone, resolve } = Promise.withResolvers<Response>()
  const resolveCallerGone = () => resolve(new Response(null, { status: 202 }))
  request.signal.addEventListener('abort', resolveCallerGone)
  try {
    await server.connect(transport)
    return await Promise.race([transport.handleRequest(request, { parsedBody: message }), callerGone])
  } finally {
    request.signal.removeEventListener('abort', resolveCallerGone)
    await server.close()
  }
}

function createServer(ctx: Ctx, request: Request): Server {
  const server = new Server({ name: 'atoll', version }, { capabilities: { tools: {}, resources: {} } })

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const { some, nextCursor } = paginate([...(await loadAllTools(ctx)).values()], params?.cursor)
    const tools = some.map(({ name, description, parameters }) => ({
      ...{ name, description, inputSchema: { ...parameters, type: 'object' as const } },
    }))
    return { tools, nextCursor }
  })

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const tool = (await loadAllTools(ctx)).get(params.name)
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `There is no tool "${params.name}".`)
    const toolContext = { ctx, request, signal, depth: 0, query: {}, agents: { left: MAX_AGENT_RUNS } }
    const { text, failed } = await runForModel(toolContext, () => tool.run(toolContext, params.arguments ?? {}))
    return { content: [{ type: 'text', text }], isError: failed }
  })

  server.setRequestHandler(ListResourcesRequestSchema, async ({ params }) => {
    const { some, nextCursor } = paginate(await listBlueprintResources(ctx), params?.cursor)
    return { resources: some, nextCursor }
  })

  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [] }))

  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const text = await readBlueprintResource(ctx, uri)
    if (text === undefined) throw new McpError(RESOURCE_NOT_FOUND_CODE, `There is no resource ${uri}.`)
    return { contents: [{ uri, mimeType: 'application/json', text }] }
  })

  return server
}

/** A page of what there is; the cursor is how many came before. */
function paginate<Thing>(all: Thing[], cursor = '0') {
  if (!/^\d{1,9}$/.test(cursor)) throw new McpError(ErrorCode.InvalidParams, 'The cursor is invalid.')
  const end = Number(cursor) + PAGE_SIZE
  return { some: all.slice(Number(cursor), end), ...(all.length > end && { nextCursor: `${end}` }) }
}
