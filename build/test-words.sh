#!/bin/bash
# The words of pages and comments: those that we don't use, as patterns of grep -P.
. "$(dirname "$0")/lib.sh"

# Instead of these: unavailable; says, returns, reports or shows; means; is, or appears; again; recently; even if; isn't, or there is no; fix.
words='\b(tells?(?! apart)|told(?! apart)|stands for|stands?(?![- ]?(in|still|ard|s? out))|anew|of late|also if'
words+='|(server|gateway) is (down|away)|(?<!there )(is|are) no(?= [a-z]+\b)|mend(s|ed|ing)?)\b'
# A sentence begins with its subject.
what='(^|[.:;]\s+)(// )?What (?!is|are|does|do|to|about|happens|if|it|gets?|they|each|you|others?|can|must)[a-z]+'

found=$(
  git ls-files -z '*.md' | xargs -0 grep -niP "^([^\`]|\`[^\`]*\`)*?\K$words"
  git ls-files -z '*.go' '*.[ch]' | xargs -0 grep -niP "(//|/\*|^ \*).*?\K$words"
  git ls-files -z '*.md' '*.go' '*.[ch]' | xargs -0 grep -nP "$what"
) || true
[ -z "$found" ] || die "words that we don't use (build/test-words.sh has better ones):"$'\n'"$found"
