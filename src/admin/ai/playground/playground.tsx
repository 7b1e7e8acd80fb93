import { Button, Select } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconAdjustments, IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { meQuery } from '../../api/queries'
import type { Agent, IntegrationSource } from '../../api/schema'
import { ProblemMessage } from '../../ui/problem-message'
import { Screen } from '../../ui/screen'
import { agentsQuery, sourcesQuery, threadQuery, toAgentName } from '../ai-queries'
import { NoSource } from '../no-source'
import { toTurns } from './chat-turns'
import { Composer } from './composer'
import { useConversation } from './conversation'
import { MessageList } from './message-list'
import classes from './playground.module.css'
import { type ChatSettings, Settings } from './settings'

/** Where a conversation is: with whom, and in which thread. */
type PlaygroundSearch = { agent?: string; source?: string; thread?: string }

/** A conversation with an agent or a model, to try it. */
export function Playground() {
  const { agent = '', source = '', thread = '' }: PlaygroundSearch = useSearch({ strict: false })
  const navigate = useNavigate()
  const { data: me } = useQuery(meQuery)
  const agents = useQuery(agentsQuery)
  const sources = useQuery({ ...sourcesQuery, enabled: !!me?.isPrivileged })
  const stored = useQuery({ ...threadQuery(thread), staleTime: Number.POSITIVE_INFINITY })
  const [conversationNumber, setConversationNumber] = useState(0)
  const [startedThread, setStartedThread] = useState('')
  const changeSearch = (search: PlaygroundSearch) =>
    navigate({ to: '/ai/playground', search: search as never, replace: true })
  const startAnew = (search: PlaygroundSearch) => {
    setConversationNumber((number) => number + 1)
    void changeSearch(search)
  }
  const isReady = agents.isSuccess && (!me?.isPrivileged || sources.isSuccess)
  const firstAgent = agents.data?.find(({ active }) => active)?._id ?? ''
  const firstSource = sources.data?.[0]?._id ?? ''
  const chosenAgent = agent || (source ? '' : (stored.data?.integration ?? firstAgent))
  const chosenSource = chosenAgent ? '' : source || firstSource
  if (isReady && !chosenAgent && !chosenSource) return <NoSource title="Playground" />
  return (
    <PlaygroundScreen
      actions={
        <>
          <TargetSelect
            agents={agents.data ?? []}
            sources={sources.data ?? []}
            value={chosenAgent ? `agent:${chosenAgent}` : `source:${chosenSource}`}
            onChange={startAnew}
          />
          <Button
            variant="default"
            leftSection={<IconPlus size={14} />}
            onClick={() => startAnew(chosenAgent ? { agent: chosenAgent } : { source: chosenSource })}
          >
            New
          </Button>
        </>
      }
      error={agents.error ?? sources.error ?? stored.error}
      agent={chosenAgent}
      source={chosenSource}
      thread={thread}
    >
      {isReady && (!thread || thread === startedThread || stored.isSuccess) && (
        <Conversation
          key={`${chosenAgent}${chosenSource} ${conversationNumber} ${thread === startedThread ? '' : thread}`}
          {...{ agent: chosenAgent, source: chosenSource, thread }}
          initialTurns={stored.data && thread ? toTurns(stored.data.messages) : []}
          seesCost={!!me?.isPrivileged}
          onThread={(started) => {
            setStartedThread(started)
            void changeSearch({ agent: chosenAgent, thread: started })
          }}
        />
      )}
    </PlaygroundScreen>
  )
}

type TargetSelectProps = {
  agents: Agent[]
  sources: IntegrationSource[]
  /** Such as `agent:<id>`. */
  value: string
  onChange: (search: PlaygroundSearch) => void
}

/** Chooses the agent or the model that answers. */
const TargetSelect = ({ agents, sources, value, onChange }: TargetSelectProps) => (
  <Select
    size="xs"
    w={{ base: 112, sm: 200 }}
    aria-label="Talk to"
    searchable
    allowDeselect={false}
    data={[
      { group: 'Agents', items: agents.map((agent) => ({ value: `agent:${agent._id}`, label: toAgentName(agent) })) },
      {
        group: 'Models without instructions',
        items: sources.map(({ _id, name }) => ({ value: `source:${_id}`, label: name })),
      },
    ]}
    value={value}
    onChange={(chosen) => {
      const [kind, id] = (chosen ?? '').split(':')
      onChange({ [kind!]: id })
    }}
  />
)

type PlaygroundScreenProps = {
  actions: React.ReactNode
  error: unknown
  agent: string
  source: string
  thread: string
  children: React.ReactNode
}

function PlaygroundScreen({ actions, error, agent, source, thread, children }: PlaygroundScreenProps) {
  const path = agent
    ? `/api/ai/${agent}/chat-completion${thread && `/${thread}`}`
    : `/api/ai/sources/${source}/chat-completion/plain`
  const body = { messages: [{ role: 'user', content: 'Hello' }], stream: true }
  return (
    <Screen title="Playground" request={{ method: 'POST', path, body }} actions={actions}>
      {error ? <ProblemMessage error={error} /> : children}
    </Screen>
  )
}

type ConversationProps = Omit<Parameters<typeof useConversation>[0], 'settings'>

function Conversation(props: ConversationProps) {
  const isWide = useMediaQuery('(min-width: 900px)', true, { getInitialValueInEffect: false })
  const [isOpen, setIsOpen] = useState(false)
  const [settings, setSettings] = useState<ChatSettings>({ systemPrompt: '', model: '' })
  const { turns, isRunning, send, stop, retry } = useConversation({ ...props, settings })
  return (
    <div className={classes.playground}>
      <div className={classes.conversation}>
        <MessageList
          turns={turns}
          agent={props.agent}
          onRetry={isRunning ? undefined : retry}
          empty="Ask something to try it."
        />
        {!isWide && (
          <Button
            mx="md"
            variant="subtle"
            color="gray"
            leftSection={<IconAdjustments size={14} />}
            aria-expanded={isOpen}
            onClick={() => setIsOpen(!isOpen)}
          >
            Settings
          </Button>
        )}
        <Composer isRunning={isRunning} isDisabled={false} onSend={send} onStop={stop} />
      </div>
      {(isWide || isOpen) && (
        <aside className={classes.settings} aria-label="Settings of the conversation">
          <Settings agent={props.agent} settings={settings} onChange={setSettings} />
        </aside>
      )}
    </div>
  )
}
