import { createRoute, lazyRouteComponent, Navigate } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

const index = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai',
  component: () => <Navigate to="/ai/agents" replace />,
})
const agents = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/agents',
  component: lazyRouteComponent(() => import('./agents/agents'), 'Agents'),
})
// No agent has the id "new".
const newAgent = createRoute({
  getParentRoute: () => agents,
  path: 'new',
  component: lazyRouteComponent(() => import('./agents/agent-panel'), 'NewAgentPanel'),
})
const agent = createRoute({
  getParentRoute: () => agents,
  path: '$id',
  component: lazyRouteComponent(() => import('./agents/agent-panel'), 'AgentPanel'),
})
const newSource = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/sources/new',
  component: lazyRouteComponent(() => import('./source-form'), 'NewSource'),
})
const playground = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/playground',
  component: lazyRouteComponent(() => import('./playground/playground'), 'Playground'),
})
const threads = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/threads',
  component: lazyRouteComponent(() => import('./threads/threads'), 'Threads'),
})
const thread = createRoute({
  getParentRoute: () => threads,
  path: '$id',
  component: lazyRouteComponent(() => import('./threads/thread-panel'), 'ThreadPanel'),
})
const knowledge = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/knowledge',
  component: lazyRouteComponent(() => import('./knowledge/knowledge'), 'Knowledge'),
})
const newStore = createRoute({
  getParentRoute: () => knowledge,
  path: 'new',
  component: lazyRouteComponent(() => import('./knowledge/new-store-panel'), 'NewStorePanel'),
})
const store = createRoute({
  getParentRoute: () => knowledge,
  path: '$source/$store',
  component: lazyRouteComponent(() => import('./knowledge/store-panel'), 'StorePanel'),
})
const usage = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/usage',
  component: lazyRouteComponent(() => import('./usage/usage'), 'Usage'),
})
const mcp = createRoute({
  getParentRoute: () => frameRoute,
  path: 'ai/mcp',
  component: lazyRouteComponent(() => import('./mcp'), 'Mcp'),
})
const blueprintDraft = createRoute({
  getParentRoute: () => frameRoute,
  path: 'blueprints/draft',
  component: lazyRouteComponent(() => import('./blueprint-draft'), 'BlueprintDraftScreen'),
})

/** The routes of agents and their knowledge. */
export const aiRoutes = [
  index,
  agents.addChildren([newAgent, agent]),
  newSource,
  playground,
  threads.addChildren([thread]),
  knowledge.addChildren([newStore, store]),
  usage,
  mcp,
  blueprintDraft,
] as const
