import { useQuery } from '@tanstack/react-query'
import { agentsQuery, toAgentName } from '../ai-queries'
import { usersQuery } from '../user-names'
import { type KnowledgeStore, SCOPE_LABELS } from './knowledge-queries'

/** Returns what the agents and the readers of stores are called. */
export function useStoreNames() {
  const { data: agents } = useQuery(agentsQuery)
  const { data: users } = useQuery(usersQuery)
  return {
    nameAgent: (id: string) => {
      const agent = agents?.find(({ _id }) => _id === id)
      return agent ? toAgentName(agent) : id.slice(0, 8)
    },
    nameSubject: ({ scope, subjectId }: Pick<KnowledgeStore, 'scope' | 'subjectId'>) => {
      if (scope === 'tenant') return SCOPE_LABELS.tenant
      if (scope === 'user') return users?.get(subjectId) ?? SCOPE_LABELS.user
      return `${SCOPE_LABELS[scope]} (${subjectId.slice(0, 8)})`
    },
  }
}
