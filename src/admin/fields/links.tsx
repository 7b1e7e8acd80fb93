import { Anchor } from '@mantine/core'
import { IconAt, IconWorld } from '@tabler/icons-react'
import { TEXT_OPERATORS } from '../data/operators'
import type { CellProps, FieldKind } from './field-kind'
import { TextListInput } from './list-input'
import { TextCell } from './text-cell'
import { lineInput } from './text-input'

/** A web address as a link; any other address, such as one with `javascript:`, is shown as text. */
const UrlCell = (props: CellProps) => {
  const address = String(props.value)
  if (!/^https?:\/\//i.test(address)) return <TextCell {...props} />
  return (
    <Anchor href={address} target="_blank" rel="noreferrer" size="sm" onClick={(event) => event.stopPropagation()}>
      {address.replace(/^https?:\/\//i, '').slice(0, 200)}
    </Anchor>
  )
}

export const email: FieldKind = {
  label: 'E-mail address',
  icon: IconAt,
  operators: TEXT_OPERATORS,
  width: 220,
  Cell: TextCell,
  Input: lineInput('email'),
  ListInput: TextListInput,
}

export const url: FieldKind = {
  label: 'Web address',
  icon: IconWorld,
  operators: TEXT_OPERATORS,
  width: 220,
  Cell: UrlCell,
  Input: lineInput('url'),
  ListInput: TextListInput,
}
