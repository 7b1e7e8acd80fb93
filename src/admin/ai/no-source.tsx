import { EmptyState } from '../ui/empty-state'
import { Screen } from '../ui/screen'

/** A screen that says what is missing before anybody can talk to a model. */
export const NoSource = ({ title }: { title: string }) => (
  <Screen title={title}>
    <EmptyState
      text="Agents need a model: connect OpenAI, or any server that speaks its API, such as Ollama."
      action={{ label: 'Connect an AI source', to: '/ai/sources/new' }}
    />
  </Screen>
)
