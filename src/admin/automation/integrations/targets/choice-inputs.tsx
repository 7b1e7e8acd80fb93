import { MultiSelect, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { InputProps } from '../../../fields/field-kind'
import { connectionsQuery } from '../../connections/connection-queries'
import { lambdaChoicesQuery } from '../../lambdas/lambda-queries'
import { toolsQuery } from '../integration-queries'

type Choice = { value: string; label: string }

const toText = (value: unknown) => (typeof value === 'string' ? value : null)

/** What was chosen stays visible, also when it exists no more. */
const withChosen = (choices: Choice[], chosen: string | null): Choice[] =>
  chosen && !choices.some(({ value }) => value === chosen) ? [...choices, { value: chosen, label: chosen }] : choices

/** Chooses a lambda by its name. */
export function LambdaInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data = [] } = useQuery(lambdaChoicesQuery)
  return (
    <Select
      {...rest}
      data={withChosen(data, toText(value))}
      value={toText(value)}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      placeholder={data.length ? 'Choose a lambda' : 'There are no lambdas yet.'}
      searchable
    />
  )
}

/** Returns an input that chooses a connection of a kind, or one of these. */
export const createConnectionInput = (kind: string, others: Choice[] = []) =>
  function ConnectionInput({ field, value, onChange, ...rest }: InputProps) {
    const { data = [] } = useQuery(connectionsQuery)
    const choices = data.filter((each) => each.kind === kind).map(({ _id, name }) => ({ value: _id, label: name }))
    return (
      <Select
        {...rest}
        data={withChosen([...others, ...choices], toText(value))}
        value={toText(value)}
        onChange={(chosen) => onChange(chosen ?? undefined)}
        placeholder="None"
        clearable={!field.required}
        searchable
      />
    )
  }

/** Chooses integrations that models can use as tools. */
export function ToolsInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data = [] } = useQuery(toolsQuery)
  return (
    <MultiSelect
      {...rest}
      data={data}
      value={Array.isArray(value) ? value.map(String) : []}
      onChange={(list) => onChange(list.length ? list : undefined)}
      searchable
    />
  )
}
