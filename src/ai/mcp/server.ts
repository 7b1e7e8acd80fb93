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
  type ToolAnnotations,
} from '@modelcontextprotocol/sdk/types.js'
import { version } from '../../../package.json'
import type { Ctx } from '../../accounts/context'
import { MAX_AGENT_RUNS, type Tool } from '../tools/tool'
import { runForModel } from '../tools/tools'
import { loadAllTools } from './mcp-tools'
import { listBlueprintResources, readBlueprintResource } from './resources'

/** What assistants are told of a tool, so that they ask before they run those that cannot be undone. */
const HINTS: Record<Tool['effect'], ToolAnnotations> = {
  reads: { readOnlyHint: true, openWorldHint: false },
  adds: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  overwrites: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  unknown: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
}

const PAGE_SIZE = 1_000 // tools or resources
const RESOURCE_NOT_FOUND_CODE = -32_002 // defined by the protocol

/**
 * Answers one message of the Model Context Protocol, with the rights of the caller. No state is kept between messages, so
 * any process may answer any of them, and a revoked right has an effect at once.
 */
export async function answerMessage(ctx: Ctx, request: Request, message: unknown): Promise<Response> {
  const server = createServer(ctx, request)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  // When the caller has gone, closing the server aborts the running call, and its result is not awaited.
  const { promise: callerGone, resolve } = Promise.withResolvers<Response>()
  const resolveCallerGone = () => resolve(new Response(null, { status: 202 }))
  request.signal.addEventListener('abort', resolveCallerGone)
  try {
    await server.connect(transport)
    return await Promise.race([transport.handleRequest(toAccepting(request), { parsedBody: message }), callerGone])
  } finally {
    request.signal.removeEventListener('abort', resolveCallerGone)
    await server.close()
  }
}

/** Returns a request that takes both types of the protocol, as the package requires: the answer is JSON in any case. */
function toAccepting({ url, method, headers }: Request): Request {
  const accepting = new Headers(headers)
  accepting.set('accept', 'application/json, text/event-stream')
  return new Request(url, { method, headers: accepting })
}

function createServer(ctx: Ctx, request: Request): Server {
  const server = new Server({ name: 'atoll', version }, { capabilities: { tools: {}, resources: {} } })

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const { items, nextCursor } = paginate([...(await loadAllTools(ctx)).values()], params?.cursor)
    const tools = items.map(({ name, description, parameters, effect }) => ({
      ...{ name, description, inputSchema: { ...parameters, type: 'object' as const } },
      annotations: HINTS[effect],
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
    const { items, nextCursor } = paginate(await listBlueprintResources(ctx), params?.cursor)
    return { resources: items, nextCursor }
  })

  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [] }))

  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const text = await readBlueprintResource(ctx, uri)
    if (text === undefined) throw new McpError(RESOURCE_NOT_FOUND_CODE, `There is no resource ${uri}.`)
    return { contents: [{ uri, mimeType: 'application/json', text }] }
  })

  return server
}

/** Returns a page of a list. The cursor is the number of items before it. @throws McpError for an invalid cursor */
function paginate<Thing>(all: Thing[], cursor = '0') {
  if (!/^\d{1,9}$/.test(cursor)) throw new McpError(ErrorCode.InvalidParams, 'The cursor is invalid.')
  const end = Number(cursor) + PAGE_SIZE
  return { items: all.slice(Number(cursor), end), ...(all.length > end && { nextCursor: `${end}` }) }
}
