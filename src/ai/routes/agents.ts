import { Elysia, status, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../../core/response-headers'
import { IdParams, SuccessShape } from '../../core/shapes'
import * as agents from '../agents'
import { chatByQuery, chatWithAgent } from '../chat'
import { searchKnowledge } from '../knowledge/inventory'
import { KnowledgeExcerpt, KnowledgeSearch } from '../knowledge/shapes'
import { Agent, AgentChange, AgentChatQuery, AgentChatRequest, AgentList, NewAgent } from '../shapes'
import { completionResponses } from './completions'

const changeResponses = { 200: Agent, 404: ProblemShape, 412: ProblemShape }

/** Agents: integrations with the trigger `chat` and the target `ai`. */
export const agentRoutes = new Elysia({ prefix: '/ai/agents', tags: ['ai'] })
  .use(aiGuard('ai'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, agents.list(ctx, query)), {
    can: 'user',
    query: AgentList,
    response: t.Array(Agent),
    detail: {
      operationId: 'listAgents',
      summary: 'List agents',
      description: 'Newest first: the agents that the caller may use.',
    },
  })
  .get('/:id', ({ ctx, params, set }) => sendVersioned(set, agents.get(ctx, params.id)), {
    can: 'user',
    params: IdParams,
    response: { 200: Agent, 404: ProblemShape },
    detail: { operationId: 'getAgent', summary: 'Get an agent', description: 'Only admins see its instructions.' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, agents.create(ctx, body))), {
    can: 'privileged',
    addsData: true,
    body: NewAgent,
    response: { 201: Agent, 409: ProblemShape },
    detail: { operationId: 'createAgent', summary: 'Create an agent' },
  })
  .put(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, agents.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: IdParams,
      body: AgentChange,
      response: changeResponses,
      detail: { operationId: 'updateAgent', summary: 'Update an agent' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, agents.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: IdParams,
      body: AgentChange,
      response: changeResponses,
      detail: { operationId: 'patchAgent', summary: 'Update an agent' },
    },
  )
  .delete('/:id', ({ ctx, params, request }) => agents.remove(ctx, params.id, ifMatchOf(request)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteAgent', summary: 'Delete an agent', description: 'Its threads can still be read.' },
  })
  .post('/:id/chat', ({ ctx, params, body, request }) => chatWithAgent(ctx, params.id, body, request), {
    can: 'user',
    costly: true,
    params: IdParams,
    body: AgentChatRequest,
    detail: { operationId: 'chatWithAgent', summary: 'Chat with an agent', responses: completionResponses },
  })
  .post('/:id/search', ({ ctx, params, body, request }) => searchKnowledge(ctx, params.id, body, request), {
    can: 'user',
    costly: true,
    params: IdParams,
    body: KnowledgeSearch,
    response: {
      200: t.Array(KnowledgeExcerpt),
      404: ProblemShape,
      409: ProblemShape,
      429: ProblemShape,
      502: ProblemShape,
      503: ProblemShape,
      504: ProblemShape,
    },
    detail: {
      operationId: 'searchAgentKnowledge',
      summary: 'Search the knowledge of an agent',
      description: 'Returns the excerpts that the agent would get for a question of the caller, best first.',
    },
  })
  .get('/:id/chat', ({ ctx, params, query, request }) => chatByQuery(ctx, params.id, query, request), {
    can: 'user',
    costly: true,
    params: t.Object({ id: t.String() }),
    query: AgentChatQuery,
    detail: {
      operationId: 'streamAgentChat',
      summary: 'Chat with an agent through an EventSource',
      responses: completionResponses,
    },
  })
