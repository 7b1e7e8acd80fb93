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
import type { Ctx } from '../../accounts/guard'
import { AGENTS } from '../tools/tool'
import { outcomeOf } from '../tools/tools'
import { definition, definitions } from './resources'
import { everyTool } from './toolbox'

const PAGE = 1_000 // tools, or resources
const NOT_FOUND = -32_002 // of resources, by the protocol

/**
 * Answers one message of the Model Context Protocol, for the caller of this request and with their rights. Nothing is kept
 * between two messages, so any server may answer any of them, and what was taken from somebody is gone at once.
 */
export async function answerMessage(ctx: Ctx, request: Request, message: unknown): Promise<Response> {
  const server = serverFor(ctx, request)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  // What runs for a caller who has gone is told so, and nobody waits for its answer.
  const { promise: left, resolve } = Promise.withResolvers<Response>()
  const leave = () => resolve(new Response(null, { status: 202 }))
  request.signal.addEventListener('abort', leave)
  try {
    await server.connect(transport)
    return await Promise.race([transport.handleRequest(request, { parsedBody: message }), left])
  } finally {
    request.signal.removeEventListener('abort', leave)
    await server.close()
  }
}

function serverFor(ctx: Ctx, request: Request): Server {
  const server = new Server({ name: 'atoll', version }, { capabilities: { tools: {}, resources: {} } })

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const { some, nextCursor } = pageOf([...(await everyTool(ctx)).values()], params?.cursor)
    const tools = some.map(({ name, description, parameters }) => ({
      ...{ name, description, inputSchema: { ...parameters, type: 'object' as const } },
    }))
    return { tools, nextCursor }
  })

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const tool = (await everyTool(ctx)).get(params.name)
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `There is no tool "${params.name}".`)
    const calling = { ctx, request, signal, depth: 0, query: {}, agents: { left: AGENTS } }
    const { text, failed } = await outcomeOf(calling, () => tool.run(calling, params.arguments ?? {}))
    return { content: [{ type: 'text', text }], isError: failed }
  })

  server.setRequestHandler(ListResourcesRequestSchema, async ({ params }) => {
    const { some, nextCursor } = pageOf(await definitions(ctx), params?.cursor)
    return { resources: some, nextCursor }
  })

  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [] }))

  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const text = await definition(ctx, uri)
    if (text === undefined) throw new McpError(NOT_FOUND, `There is no resource ${uri}.`)
    return { contents: [{ uri, mimeType: 'application/json', text }] }
  })

  return server
}

/** A page of what there is; the cursor is how many came before. */
function pageOf<Thing>(all: Thing[], cursor = '0') {
  if (!/^\d{1,9}$/.test(cursor)) throw new McpError(ErrorCode.InvalidParams, 'This cursor comes from no answer.')
  const end = Number(cursor) + PAGE
  return { some: all.slice(Number(cursor), end), ...(all.length > end && { nextCursor: `${end}` }) }
}
