import { Input, SegmentedControl } from '@mantine/core'
import type { InputProps } from '../fields/field-kind'
import { BLOCK_KINDS } from './block-kinds'

/** Chooses whether a block is text or HTML. */
export const BlockKindInput = ({ label, value, onChange, error }: InputProps) => (
  <Input.Wrapper label={label} labelElement="div" error={error}>
    <div>
      <SegmentedControl aria-label={label} size="xs" data={BLOCK_KINDS} value={String(value)} onChange={onChange} />
    </div>
  </Input.Wrapper>
)
