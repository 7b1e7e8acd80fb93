import { IconSparkles } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const ADMINS = ['admin']

/** The section of agents and their knowledge. */
export const aiSection: Section = {
  label: 'AI',
  path: '/ai',
  icon: IconSparkles,
  pages: [
    { label: 'Agents', path: '/ai/agents', keywords: 'assistant chatbot prompt model' },
    { label: 'Playground', path: '/ai/playground', keywords: 'chat try' },
    { label: 'Threads', path: '/ai/threads', keywords: 'conversations messages' },
    {
      label: 'Knowledge',
      path: '/ai/knowledge',
      roles: ADMINS,
      keywords: 'vector store embeddings retrieval rag documents',
    },
    { label: 'Usage', path: '/ai/usage', roles: ADMINS, keywords: 'tokens cost budget' },
    { label: 'MCP', path: '/ai/mcp', keywords: 'tools claude cursor client' },
  ],
  actions: [
    { label: 'New agent', path: '/ai/agents/new', roles: ADMINS, keywords: 'create assistant chatbot' },
    {
      label: 'Connect a model server',
      path: '/ai/sources/new',
      roles: ADMINS,
      keywords: 'openai anthropic ollama api key source',
    },
    { label: 'Draft a blueprint with AI', path: '/blueprints/draft', roles: ADMINS, keywords: 'generate model' },
    { label: 'New vector store', path: '/ai/knowledge/new', roles: ADMINS, keywords: 'create upload documents rag' },
  ],
}
