import { IconTool } from '@tabler/icons-react'
import type { ToolStep } from './chat-turns'
import classes from './message.module.css'

/** Returns JSON with line breaks, and any other text as it is. */
function formatJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const JsonText = ({ text }: { text: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
  <pre className={classes.json} tabIndex={0}>
    {formatJson(text)}
  </pre>
)

function hasFailed({ output }: ToolStep): boolean {
  try {
    return output !== undefined && 'error' in JSON.parse(output)
  } catch {
    return false
  }
}

/** The tools that were called for an answer, folded, with what they got and what they returned. */
export const ToolSteps = ({ steps }: { steps: ToolStep[] }) =>
  steps.map((step) => (
    <details key={step.id} className={classes.step}>
      <summary>
        <IconTool size={14} aria-hidden /> {step.name}
        {step.output === undefined ? ' has no result' : hasFailed(step) ? ' failed' : ''}
      </summary>
      <p className={classes.caption}>Arguments</p>
      <JsonText text={step.input} />
      {step.output !== undefined && (
        <>
          <p className={classes.caption}>Result</p>
          <JsonText text={step.output} />
        </>
      )}
    </details>
  ))
