# Sets this machine up from the bundle in this folder, without any network: as start.bat does, which does the work, with
# its words, its exit codes and its log.
#
#   powershell -ExecutionPolicy Bypass -File start.ps1 --yes --target C:\torch
& "$PSScriptRoot\start.bat" @args
exit $LASTEXITCODE
