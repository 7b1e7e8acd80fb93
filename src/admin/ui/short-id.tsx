import { Tooltip, UnstyledButton } from '@mantine/core'
import { CopyButton } from './copy-button'

const SHOWN_CHARACTERS = 8

/** The beginning of an id; a click copies all of it. */
export const ShortId = ({ id }: { id: string }) => (
  <CopyButton value={id}>
    {({ copied, copy }) => (
      <Tooltip label={copied ? 'Copied' : id}>
        <UnstyledButton
          ff="monospace"
          fz="xs"
          aria-label={`Copy ${id.slice(0, SHOWN_CHARACTERS)}`}
          onClick={(event) => {
            event.stopPropagation()
            copy()
          }}
        >
          {id.slice(0, SHOWN_CHARACTERS)}
        </UnstyledButton>
      </Tooltip>
    )}
  </CopyButton>
)
