import { Button, MultiSelect, Select, TagsInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { blueprintsQuery } from '../../api/queries'
import { toolsQuery } from '../../automation/integrations/integration-queries'
import type { InputProps } from '../../fields/field-kind'
import { ECHO_SOURCE_ID, sourcesQuery } from '../ai-queries'

type Option = { value: string; label: string }

const toList = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])

function ChoicesInput({ field: _, value, onChange, options, ...rest }: InputProps & { options: Option[] }) {
  const chosen = toList(value)
  const unlisted = chosen.filter((one) => !options.some((option) => option.value === one))
  return (
    <MultiSelect
      {...rest}
      data={[...options, ...unlisted.map((one) => ({ value: one, label: one }))]}
      value={chosen}
      onChange={onChange}
      searchable
      clearable
    />
  )
}

/** Chooses the connection to the model. */
export function SourceInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: sources = [] } = useQuery(sourcesQuery)
  const options = [
    ...sources.map(({ _id, name }) => ({ value: _id, label: name })),
    { value: ECHO_SOURCE_ID, label: 'Echo, which repeats what it is told' },
  ]
  return (
    <Select
      {...rest}
      data={options}
      value={typeof value === 'string' ? value : null}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      allowDeselect={false}
    />
  )
}

/** Chooses the blueprints whose entities an agent may work with. */
export function BlueprintsInput(props: InputProps) {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  return <ChoicesInput {...props} options={blueprints.map(({ key, name }) => ({ value: key, label: name }))} />
}

/** Chooses the integrations that an agent may call. */
export function ToolsInput(props: InputProps) {
  const { data: options = [] } = useQuery(toolsQuery)
  return <ChoicesInput {...props} options={options} />
}

const SCOPES: Option[] = [
  { value: 'tenant', label: 'Everybody' },
  { value: 'workspace', label: 'The workspace' },
  { value: 'user', label: 'The user' },
  { value: 'thread', label: 'The conversation' },
]

/** Chooses whose files an agent answers from. */
export const KnowledgeInput = (props: InputProps) => <ChoicesInput {...props} options={SCOPES} />

/** Takes the names of roles. */
export const RolesInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <TagsInput {...rest} value={toList(value)} onChange={onChange} />
)

/** Shows the settings that few agents need. */
export const MoreToggle = ({ value, onChange }: InputProps) => (
  <Button variant="subtle" color="gray" w="fit-content" aria-expanded={!!value} onClick={() => onChange(!value)}>
    {value ? 'Hide the other settings' : 'Show all settings'}
  </Button>
)
