import type { Ctx } from '../../accounts/context'
import { badRequest, Problem } from '../../core/problem'
import { type AgentRow, listUsableAgents } from '../agents'
import type { Model } from './shapes'

/** Returns the agents that the caller may use, as models, newest first. */
export async function list(ctx: Ctx): Promise<{ object: 'list'; data: Model[] }> {
  const agents = await listUsableAgents(ctx)
  const countByName = Map.groupBy(agents, ({ name }) => name)
  return {
    object: 'list',
    data: agents.map((agent) => toModel(agent, countByName.get(agent.name)!.length === 1 ? agent.name : null)),
  }
}

/** Returns a model. @throws what `getAgentByModel` throws */
export const get = async (ctx: Ctx, model: string): Promise<Model> => toModel(await getAgentByModel(ctx, model), model)

const toModel = ({ _id, created }: AgentRow, name: string | null): Model => ({
  ...{ id: name || _id, object: 'model', created: Math.floor(Date.parse(created) / 1000), owned_by: 'atoll' },
})

/**
 * Returns the agent that a request names as its model: the one with this id, or else with this name.
 * @throws 400 when several have the name, 404 MODEL_NOT_FOUND
 */
export async function getAgentByModel(ctx: Ctx, model: string): Promise<AgentRow> {
  const named = await listUsableAgents(ctx, model)
  const agent = named.find(({ _id }) => _id === model) ?? named[0]
  if (!agent)
    throw new Problem(404, 'MODEL_NOT_FOUND', 'There is no agent with this name or id that you may use.', {
      details: [{ path: 'model', message: 'GET /api/ai/v1/models lists the agents that you may use.' }],
    })
  if (agent._id !== model && named.length > 1)
    badRequest({ path: '/model', message: 'Several agents have this name. Use the id of one of them.' })
  return agent
}
