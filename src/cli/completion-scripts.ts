/**
 * The scripts of the shells. They ask the program itself for what fits, so that they stay the same
 * when commands change. `complete -- WORDS...` prints a candidate a line; the last word is the one
 * that is being written.
 */
export const completionScripts = {
  bash: `_queued_crawler() {
  local IFS=$'\\n'
  COMPREPLY=( $(queued-crawler complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
  if [ \${#COMPREPLY[@]} -eq 0 ]; then
    compopt -o default 2>/dev/null
  fi
}
complete -F _queued_crawler queued-crawler
`,
  zsh: `#compdef queued-crawler
_queued_crawler() {
  local -a found
  found=("\${(@f)$(queued-crawler complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[*]}" ]]; then
    compadd -- $found
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_queued_crawler" ]; then
  _queued_crawler "$@"
else
  compdef _queued_crawler queued-crawler
fi
`,
  fish: `function __queued_crawler
  set -l words (commandline -opc) (commandline -ct)
  queued-crawler complete -- $words[2..-1] 2>/dev/null
end
complete -c queued-crawler -a '(__queued_crawler)'
`,
} as const;
