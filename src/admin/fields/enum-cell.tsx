import { Badge } from '@mantine/core'
import type { CellProps } from './field-kind'
import { TextCell } from './text-cell'

/** A value of a list of values as a quiet tag, any other text as it is. */
export const EnumCell = (props: CellProps) =>
  props.field.enum ? (
    <Badge variant="light" color="gray" radius="sm" tt="none" fw={500}>
      {String(props.value)}
    </Badge>
  ) : (
    <TextCell {...props} />
  )
