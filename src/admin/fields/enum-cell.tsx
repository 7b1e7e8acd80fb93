import classes from './enum-cell.module.css'
import type { CellProps } from './field-kind'
import { TextCell } from './text-cell'

/** A value of a list of values as a quiet tag, any other text as it is. */
export const EnumCell = (props: CellProps) =>
  props.field.enum ? <span className={classes.tag}>{String(props.value)}</span> : <TextCell {...props} />
