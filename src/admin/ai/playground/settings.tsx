import { Anchor, NumberInput, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { agentQuery } from '../ai-queries'
import classes from './playground.module.css'

/** What a person sets for their questions, beside what the agent says. */
export type ChatSettings = { systemPrompt: string; model: string; temperature?: number; maxTokens?: number }

type SettingsProps = { agent: string; settings: ChatSettings; onChange: (settings: ChatSettings) => void }

/** Instructions and parameters of a conversation. Those of an agent are shown, and some can be tried otherwise. */
export function Settings({ agent: id, settings, onChange }: SettingsProps) {
  const { data: agent } = useQuery(agentQuery(id))
  const change = (part: Partial<ChatSettings>) => onChange({ ...settings, ...part })
  const toNumber = (value: number | string) => (typeof value === 'number' ? value : undefined)
  return (
    <Stack gap="sm">
      {id ? (
        <AgentInstructions id={id} text={agent?.systemPrompt} />
      ) : (
        <Textarea
          label="Instructions"
          description="Instructions that the model gets before the conversation."
          autosize
          minRows={3}
          maxRows={12}
          value={settings.systemPrompt}
          onChange={(event) => change({ systemPrompt: event.currentTarget.value })}
        />
      )}
      <TextInput
        label="Model"
        placeholder={agent?.model ?? 'As the source says'}
        value={settings.model}
        onChange={(event) => change({ model: event.currentTarget.value })}
      />
      <NumberInput
        label="Temperature"
        description="0 gives the same answer each time, 2 the most varied ones."
        placeholder={agent?.temperature?.toString()}
        min={0}
        max={2}
        step={0.1}
        value={settings.temperature ?? ''}
        onChange={(value) => change({ temperature: toNumber(value) })}
      />
      <NumberInput
        label="Longest answer"
        description="In tokens."
        placeholder={agent?.max_tokens?.toString()}
        min={1}
        allowDecimal={false}
        value={settings.maxTokens ?? ''}
        onChange={(value) => change({ maxTokens: toNumber(value) })}
      />
    </Stack>
  )
}

const AgentInstructions = ({ id, text }: { id: string; text?: string }) => (
  <div>
    <Text size="sm" fw={500}>
      Instructions
    </Text>
    <Text size="sm" c={text ? undefined : 'dimmed'} className={classes.instructions} dir="auto">
      {text || 'None.'}
    </Text>
    <Anchor component={Link} to={`/ai/agents/${id}`} size="xs">
      Change the agent
    </Anchor>
  </div>
)
